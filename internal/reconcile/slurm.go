// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/coxswain-hpc/coxswain/internal/link"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// Queue is a controller's queue of what to reconcile.
type Queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// PodsOf are the worker pods that a change of a link concerns; none, and a line in the log, when they cannot be listed. What the cache has
// is only read.
func PodsOf(ctx context.Context, reader client.Reader, change link.Change) []corev1.Pod {
	var pods corev1.PodList
	err := reader.List(ctx, &pods, client.InNamespace(change.Link.Namespace),
		client.MatchingFields{workerpod.SlurmNodeIndex: workerpod.SlurmNodeKey(change.Link.Name, change.Node)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not find the pod of a Slurm node", "cluster", change.Link.String(), "node", change.Node)
	}
	return pods.Items
}

// SlurmChanges is a source that passes every change of the links to wake, which puts on the queue what it concerns. Its
// goroutine ends with the controller's context.
func SlurmChanges(links *link.Registry, wake func(ctx context.Context, queue Queue, change link.Change)) source.Source {
	return source.Func(func(ctx context.Context, queue Queue) error {
		subscription := links.Subscribe()
		go func() {
			defer subscription.Close()
			for {
				select {
				case <-ctx.Done():
					return
				case <-subscription.Ready():
					for _, change := range subscription.Take() {
						wake(ctx, queue, change)
					}
				}
			}
		}()
		return nil
	})
}
