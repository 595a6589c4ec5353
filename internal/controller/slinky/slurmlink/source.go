// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmlink

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/coxswain-hpc/coxswain/internal/controller/component"
	"github.com/coxswain-hpc/coxswain/internal/link"
)

// wake wakes the Controllers whose link became another in trust, or ran out of its budget.
func wake(_ context.Context, queue component.Queue, change link.Change) {
	if change.Node == "" {
		queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: change.Link.Namespace, Name: change.Link.Name}})
	}
}
