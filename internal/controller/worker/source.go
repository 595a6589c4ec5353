// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/coxswain-hpc/coxswain/internal/link"
)

// slurmChanges wakes the pods whose Slurm node changed. The goroutine ends with the controller's context.
func (r *reconciler) slurmChanges() source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		subscription := r.links.Subscribe()
		go func() {
			defer subscription.Close()
			for {
				select {
				case <-ctx.Done():
					return
				case <-subscription.Ready():
					for _, change := range subscription.Take() {
						r.wake(ctx, queue, change)
					}
				}
			}
		}()
		return nil
	})
}

func (r *reconciler) wake(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request], change link.Change) {
	var pods corev1.PodList
	err := r.Client.List(ctx, &pods, client.InNamespace(change.Link.Namespace),
		client.MatchingFields{nodeIndex: nodeKey(change.Link.Name, change.Node)})
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not find the pod of a Slurm node", "cluster", change.Link.String(), "node", change.Node)
		return
	}
	for i := range pods.Items {
		queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&pods.Items[i])})
	}
}
