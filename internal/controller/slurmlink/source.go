// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmlink

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// linkChanges wakes the Controllers whose link became another in trust, or ran out of its budget. The goroutine ends with
// the controller's context.
func (r *reconciler) linkChanges() source.Source {
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
						if change.Node == "" {
							queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: change.Link.Namespace, Name: change.Link.Name}})
						}
					}
				}
			}
		}()
		return nil
	})
}
