// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// settings are what a NodeSet sets for each of its workers.
type settings struct {
	drainTimeout string
	protection   workerpod.Protection
	departs      bool
	lost         bool
	dryRun       bool
	checks       string
}

func settingsOf(n *slinkyv1beta1.NodeSet) settings {
	s := settings{protection: workerpod.ProtectionOf(n), departs: departs(n), lost: workerpod.Lost(n), dryRun: workerpod.DryRun(n), checks: strings.Join(n.Spec.RequiredChecks, ",")}
	if n.Spec.DrainTimeout != nil {
		s.drainTimeout = n.Spec.DrainTimeout.Duration.String()
	}
	return s
}

// nodeSetChanges lets through the changes of NodeSets that concern every single worker.
func nodeSetChanges() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, // the pods come by themselves
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*slinkyv1beta1.NodeSet)
			after, okay := e.ObjectNew.(*slinkyv1beta1.NodeSet)
			return !ok || !okay || settingsOf(before) != settingsOf(after)
		},
	}
}

// podsOf returns the workers of a NodeSet.
func (r *reconciler) podsOf(ctx context.Context, o client.Object) []ctrl.Request {
	var pods corev1.PodList
	err := r.Client.List(ctx, &pods, client.InNamespace(o.GetNamespace()), client.MatchingFields{kube.OwnerIndex: string(o.GetUID())},
		client.UnsafeDisableDeepCopy) // only their names are read
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not find the workers of a NodeSet", "namespace", o.GetNamespace(), "nodeset", o.GetName())
		return nil
	}
	return requestsFor(pods.Items)
}

// requestsFor returns the keys of pods.
func requestsFor(pods []corev1.Pod) []ctrl.Request {
	requests := make([]ctrl.Request, 0, len(pods))
	for i := range pods {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&pods[i])})
	}
	return requests
}

// wakeWhenPermitted wakes pods that waited for a permit.
func (r *reconciler) wakeWhenPermitted() source.Source {
	return source.Func(func(_ context.Context, queue reconcile.Queue) error {
		r.writes.wake = func(pod types.NamespacedName) { queue.Add(ctrl.Request{NamespacedName: pod}) }
		return nil
	})
}

// wakeByStorage wakes the pods whose ephemeral storage is nearly used up, or no longer so.
func (r *reconciler) wakeByStorage() source.Source {
	return source.Func(func(_ context.Context, queue reconcile.Queue) error {
		r.storage.Notify(func(pod types.NamespacedName) { queue.Add(ctrl.Request{NamespacedName: pod}) })
		return nil
	})
}
