// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// highPriority is for a worker that may have to be drained, defaultPriority for all others. Showing Slurm's state is most of the work: when
// a thousand nodes are cordoned, the last drain must not wait for what the first pod shows.
const (
	defaultPriority = 0
	highPriority    = 10
)

// withHighPriority wakes workers before all others.
func withHighPriority(find handler.MapFunc) handler.EventHandler {
	add := func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request], o client.Object) {
		for _, request := range find(ctx, o) {
			if q, ok := queue.(priorityqueue.PriorityQueue[ctrl.Request]); ok {
				q.AddWithOpts(priorityqueue.AddOpts{Priority: new(highPriority)}, request)
			} else {
				queue.Add(request)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
			add(ctx, q, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
			add(ctx, q, e.ObjectNew)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
			add(ctx, q, e.Object)
		},
	}
}

// cordons lets through pods that were cordoned, retired, or neither any more.
func cordons() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, // they come anyway
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()
			return isWorker(e.ObjectNew) && (before[slinkyv1beta1.AnnotationPodCordon] != after[slinkyv1beta1.AnnotationPodCordon] ||
				before[slinkyv1beta1.AnnotationRetired] != after[slinkyv1beta1.AnnotationRetired])
		},
	}
}
