// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"fmt"
	"sync"
	"time"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/link"
)

const (
	// patience is how long a reconcile waits for Slurm.
	patience = 5 * time.Second
	// another is how long a NodeSet waits that finds another one of its cluster asking Slurm.
	another = time.Second
)

// talks are the clusters whose Slurm a reconcile waits for now. A Slurm that is silent keeps one reconcile at a time waiting,
// and not the NodeSets of all clusters.
type talks struct {
	mu   sync.Mutex
	with map[link.Key]bool
}

// begin begins a talk with a cluster, unless there is one.
func (t *talks) begin(cluster link.Key) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.with[cluster] {
		return false
	}
	if t.with == nil {
		t.with = map[link.Key]bool{}
	}
	t.with[cluster] = true
	return true
}

func (t *talks) end(cluster link.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.with, cluster)
}

// talk asks Slurm, and tells it something, for as long as a reconcile may wait. When another NodeSet of the cluster does so
// now, it says when to come back.
func (r *reconciler) talk(ctx context.Context, n *slinkyv1beta1.NodeSet, about func(context.Context) error) (again time.Time, err error) {
	cluster := link.Key{Namespace: n.Namespace, Name: n.Spec.ControllerRef.Name}
	if !r.talks.begin(cluster) {
		return r.Clock.Now().Add(another), nil
	}
	defer r.talks.end(cluster)
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = about(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("waiting for Slurm for %s: %w", patience, err)
	}
	return time.Time{}, err
}
