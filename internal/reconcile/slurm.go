// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// Queue is a controller's queue of what to reconcile.
type Queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// SlurmChanges is a source that passes every change of the Slurm caches to wake, which puts on the queue what it concerns. Its
// goroutine ends with the controller's context.
func SlurmChanges(caches *slurmcache.Registry, wake func(ctx context.Context, queue Queue, change slurmcache.Change)) source.Source {
	return source.Func(func(ctx context.Context, queue Queue) error {
		subscription := caches.Subscribe()
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
