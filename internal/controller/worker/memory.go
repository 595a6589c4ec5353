// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-hpc/coxswain/internal/link"
	"github.com/coxswain-hpc/coxswain/internal/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// memory is what no object says of workers. All of it may be lost: an operator that starts looks longer before it believes
// that a node is absent, and tries once more what Slurm refused.
type memory struct {
	mu   sync.Mutex
	pods map[types.NamespacedName]*past
}

// past is what was seen of one worker.
type past struct {
	cluster link.Key
	// absent is since when Slurm did not have its node, whenever it was asked.
	absent time.Time
	// wrote is when its Slurm node was last changed by us.
	wrote time.Time
	tried nodeset.Attempt
}

// of is the past of a pod. The caller holds the lock.
func (m *memory) of(pod types.NamespacedName) *past {
	if m.pods == nil {
		m.pods = map[types.NamespacedName]*past{}
	}
	p := m.pods[pod]
	if p == nil {
		p = &past{}
		m.pods[pod] = p
	}
	return p
}

// wrote notes a change, whether it succeeded or not: a reply may have been lost. What Slurm said before may be no longer
// true: a node that was drained, undrained and is to be drained again still shows as drained, and jobs may run on it.
func (m *memory) wrote(pod types.NamespacedName, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(pod).wrote = now
}

// tried notes an update of the record.
func (m *memory) tried(pod types.NamespacedName, a nodeset.Attempt) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(pod).tried = a
}

// shows says whether a view that was asked for at taken shows the last change.
func (m *memory) shows(pod types.NamespacedName, taken time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.pods[pod]
	return !ok || !taken.Before(p.wrote)
}

// recall notes what Slurm says of a worker, and fills in what was seen of it before.
func (m *memory) recall(pod types.NamespacedName, cluster link.Key, w *nodeset.Worker) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.of(pod)
	p.cluster = cluster
	switch {
	case w.Known != node.No:
		p.absent = time.Time{}
	case p.absent.IsZero():
		p.absent = w.Asked
	}
	w.Absent, w.Tried = p.absent, p.tried
}

// forget drops what is known of a pod that is gone, and returns its cluster. Its successor drains and undrains anew.
func (m *memory) forget(pod types.NamespacedName) (cluster link.Key, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, known := m.pods[pod]
	delete(m.pods, pod)
	if !known {
		return link.Key{}, false
	}
	return p.cluster, true
}
