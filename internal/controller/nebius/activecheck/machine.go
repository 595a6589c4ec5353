// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/activecheck/activecheckplan"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// waiting returns the worker pods that need a check and have a Kubernetes node, with their machines, by name.
func (r *reconciler) waiting(ctx context.Context, check *nebiusv1alpha1.ActiveCheck) (out []activecheckplan.Worker, err error) {
	pods, err := r.workers(ctx, check)
	if err != nil {
		return nil, err
	}
	for i := range pods {
		p := &pods[i]
		if p.Spec.NodeName == "" || p.DeletionTimestamp != nil || !slices.Contains(workerpod.RequiredChecks(p.Annotations), check.Name) {
			continue
		}
		w := activecheckplan.Worker{Name: p.Name, UID: p.UID, CheckState: p.Annotations[slinkyv1beta1.AnnotationCheckPrefix+check.Name]}
		var n corev1.Node
		switch err := r.Client.Get(ctx, client.ObjectKey{Name: p.Spec.NodeName}, &n, client.UnsafeDisableDeepCopy); {
		case err == nil:
			w.Machine = workerpod.MachineOf(&n)
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("reading the Kubernetes node %s: %w", p.Spec.NodeName, err)
		}
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b activecheckplan.Worker) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// mark writes on worker pods how the check went on their machines. Each check has its own field manager, which owns nothing else there.
func (r *reconciler) mark(ctx context.Context, check *nebiusv1alpha1.ActiveCheck, marks []activecheckplan.Mark) error {
	var errs []error
	for _, m := range marks {
		apply := corev1ac.Pod(m.Pod, check.Namespace).WithUID(m.UID).
			WithAnnotations(map[string]string{slinkyv1beta1.AnnotationCheckPrefix + check.Name: m.CheckState})
		err := r.Client.Apply(ctx, apply, client.FieldOwner(fieldManager+"-"+check.Name), client.ForceOwnership)
		if err = reconcile.IgnoreGone(err); err != nil {
			errs = append(errs, fmt.Errorf("annotating Pod %s/%s: %w", check.Namespace, m.Pod, err))
		}
	}
	return errors.Join(errs...)
}

// needed maps a worker pod to the checks that it needs.
func needed(_ context.Context, o client.Object) (out []ctrl.Request) {
	for _, name := range workerpod.RequiredChecks(o.GetAnnotations()) {
		out = append(out, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: name}})
	}
	return out
}

// needy lets through the worker pods that need checks: when they are created, get a Kubernetes node, or wait.
func needy() predicate.Predicate {
	return predicate.And(predicate.NewPredicateFuncs(func(o client.Object) bool { return len(workerpod.RequiredChecks(o.GetAnnotations())) > 0 }), predicate.Funcs{
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*corev1.Pod)
			after, okay := e.ObjectNew.(*corev1.Pod)
			return !ok || !okay || before.Spec.NodeName != after.Spec.NodeName || waits(before) != waits(after)
		},
	})
}

// waits reports whether a worker pod shows that it waits for checks, also after it has passed them on another machine.
func waits(p *corev1.Pod) bool {
	c := workerpod.Condition(p, slinkyv1beta1.PodConditionOutOfService)
	return c != nil && c.Reason == slinkyv1beta1.ReasonWaitsForChecks
}
