// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/perkey"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

const (
	// minIntervalPerWorker is how long a NodeSet is left alone after it was looked at, for each worker it has. Every change of a worker
	// concerns it, and a look takes longer the more workers it has. When all of them change, that would be most of what the operator does,
	// with a write of the status each time.
	minIntervalPerWorker = 500 * time.Microsecond
	maxInterval          = time.Second
)

// pace is until when NodeSets are left alone. It may be lost.
type pace struct {
	until perkey.Memory[types.NamespacedName, time.Time]
}

// looked notes that a NodeSet with so many workers was looked at.
func (p *pace) looked(set types.NamespacedName, workers int, now time.Time) {
	p.until.Set(set, now.Add(min(maxInterval, time.Duration(workers)*minIntervalPerWorker)))
}

// pause returns how much longer a NodeSet is to be left alone.
func (p *pace) pause(set types.NamespacedName, now time.Time) (left time.Duration) {
	p.until.Change(set, func(until *time.Time) bool { left = until.Sub(now); return left > 0 })
	return left
}

const (
	// slurmCallTimeout is how long a reconcile waits for Slurm.
	slurmCallTimeout = 5 * time.Second
	// busyRetryInterval is how long a NodeSet waits when another one of its cluster is asking Slurm.
	busyRetryInterval = time.Second
)

// callSlurm calls Slurm for as long as a reconcile may wait. When another NodeSet of the cluster does so now, it returns when to come back.
func (r *reconciler) callSlurm(ctx context.Context, n *slinkyv1beta1.NodeSet, about func(context.Context) error) (again time.Time, err error) {
	cluster := slurmcache.Key{Namespace: n.Namespace, Name: n.Spec.ControllerRef.Name}
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
