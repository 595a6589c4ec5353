// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// wake wakes the pods whose Slurm node changed.
func (r *reconciler) wake(ctx context.Context, queue reconcile.Queue, change slurmcache.Change) {
	pods, err := workerpod.OfSlurmNode(ctx, r.Client, change.Cluster.Namespace, change.Cluster.Name, change.Node)
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not find the pod of a Slurm node", "cluster", change.Cluster.String(), "node", change.Node)
		return
	}
	for i := range pods {
		queue.Add(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&pods[i])})
	}
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
