// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/kube"
)

// ObserveWorkload reads a Deployment or StatefulSet, and returns as a part how far it is from the wanted number of pods. The cache may
// still show another number just after it was written.
func (b *Base) ObserveWorkload(ctx context.Context, namespace, name string, obj client.Object, part string, pods int32) (kube.Part, Workload, error) {
	err := b.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, obj)
	if apierrors.IsNotFound(err) {
		return kube.Part{Name: part, Reason: kube.ReasonRollingOut, Message: "is not created yet"}, Workload{}, nil
	}
	if err != nil {
		return kube.Part{}, Workload{}, fmt.Errorf("reading %T %s/%s: %w", obj, namespace, name, err)
	}
	w, err := WorkloadOf(obj)
	if err != nil {
		return kube.Part{}, w, err
	}
	w.Current = w.Current && w.Desired == pods
	return w.part(part, pods), w, nil
}

// Workload is how far a Deployment or StatefulSet is.
type Workload struct {
	Desired, Replicas, Ready, Updated int32
	// Current is true if the counts belong to the newest spec, and that is the wanted one.
	Current bool
}

// WorkloadOf returns how far a Deployment or StatefulSet is.
func WorkloadOf(obj client.Object) (Workload, error) {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return Workload{
			Desired: value(o.Spec.Replicas), Replicas: o.Status.Replicas, Ready: o.Status.ReadyReplicas, Updated: o.Status.UpdatedReplicas,
			Current: o.Status.ObservedGeneration >= o.Generation,
		}, nil
	case *appsv1.StatefulSet:
		return Workload{
			Desired: value(o.Spec.Replicas), Replicas: o.Status.Replicas, Ready: o.Status.ReadyReplicas, Updated: o.Status.UpdatedReplicas,
			Current: o.Status.ObservedGeneration >= o.Generation,
		}, nil
	default:
		return Workload{}, errors.New("observing a workload that is neither Deployment nor StatefulSet")
	}
}

// None reports whether the workload has no pods and makes none.
func (w Workload) None() bool { return w.Current && w.Desired == 0 && w.Replicas == 0 }

func (w Workload) part(name string, pods int32) kube.Part {
	switch {
	case !w.Current || w.Updated < w.Desired:
		return kube.Part{Name: name, Reason: kube.ReasonRollingOut, Message: fmt.Sprintf("%d of %d pods are up to date", w.Updated, pods)}
	case w.Ready < w.Desired:
		return kube.Part{Name: name, Reason: kube.ReasonPodsNotReady, Message: fmt.Sprintf("%d of %d pods are ready", w.Ready, w.Desired)}
	default:
		return kube.Part{Name: name, Ready: true, Reason: kube.ReasonAvailable, Message: fmt.Sprintf("%d of %d pods are ready", w.Ready, w.Desired)}
	}
}

func value(p *int32) int32 {
	if p == nil {
		return 1
	}
	return *p
}

// The condition of a suspended component, and its reasons. They have the values of the constants in api/.
const (
	conditionSuspended = "Suspended"
	reasonSuspended    = "Suspended"
	reasonSuspending   = "Suspending"
	reasonResuming     = "Resuming"
	reasonResumed      = "Resumed"
)

// Suspension is what is known of a component that spec.suspend can stop.
type Suspension struct {
	// Suspend is what the spec asks for.
	Suspend bool
	// Stopped is true if the component has no pod, and none is wanted.
	Stopped bool
	// Ready is true if all pods are ready that the component is to have when it is not suspended.
	Ready bool
	// Before is the condition Suspended as it was; nil for none.
	Before *metav1.Condition
}

// Condition is the condition Suspended. A component that was never suspended has none.
func (s Suspension) Condition() (metav1.Condition, bool) {
	is := func(status metav1.ConditionStatus, reason, message string) (metav1.Condition, bool) {
		return metav1.Condition{Type: conditionSuspended, Status: status, Reason: reason, Message: message}, true
	}
	switch {
	case s.Suspend && s.Stopped:
		return is(metav1.ConditionTrue, reasonSuspended, "spec.suspend is true, and no pod is left")
	case s.Suspend:
		return is(metav1.ConditionFalse, reasonSuspending, "spec.suspend is true, and pods are still there")
	case s.Before == nil:
		return metav1.Condition{}, false
	case s.Ready || s.Before.Reason == reasonResumed:
		return is(metav1.ConditionFalse, reasonResumed, "spec.suspend is false again")
	default:
		return is(metav1.ConditionFalse, reasonResuming, "spec.suspend is false again, and it is not ready yet")
	}
}

// Part is the component as a part that has to be ready. A suspended component is ready when it is stopped; part is the result
// otherwise.
func (s Suspension) Part(part kube.Part) kube.Part {
	if !s.Suspend {
		return part
	}
	part.Ready, part.Stalled, part.Reason, part.Message = s.Stopped, false, reasonSuspending, "is being stopped"
	if s.Stopped {
		part.Reason, part.Message = reasonSuspended, "is stopped, since spec.suspend is true"
	}
	return part
}

// ReadyReason is the reason of a component that is ready.
func (s Suspension) ReadyReason() string {
	if s.Suspend {
		return reasonSuspended
	}
	return ""
}
