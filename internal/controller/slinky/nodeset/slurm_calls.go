// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"fmt"
	"time"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/link"
)

const (
	// slurmCallTimeout is how long a reconcile waits for Slurm.
	slurmCallTimeout = 5 * time.Second
	// busyRetryInterval is how long a NodeSet waits when another one of its cluster is asking Slurm.
	busyRetryInterval = time.Second
)

// callSlurm calls Slurm for as long as a reconcile may wait. When another NodeSet of the cluster does so now, it returns when to come back.
func (r *reconciler) callSlurm(ctx context.Context, n *slinkyv1beta1.NodeSet, about func(context.Context) error) (again time.Time, err error) {
	cluster := link.Key{Namespace: n.Namespace, Name: n.Spec.ControllerRef.Name}
	if !r.calls.Enter(cluster, 1) {
		return r.Clock.Now().Add(busyRetryInterval), nil
	}
	defer r.calls.Leave(cluster)
	limited, cancel := context.WithTimeout(ctx, slurmCallTimeout)
	defer cancel()
	err = about(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("waiting for Slurm for %s: %w", slurmCallTimeout, err)
	}
	return time.Time{}, err
}
