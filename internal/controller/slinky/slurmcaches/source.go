// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcaches

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// wake wakes the Controllers whose Slurm cache changed in trust, or ran out of its budget.
func wake(_ context.Context, queue reconcile.Queue, change slurmcache.Change) {
	if change.Node == "" {
		queue.Add(ctrl.Request{NamespacedName: types.NamespacedName{Namespace: change.Cluster.Namespace, Name: change.Cluster.Name}})
	}
}
