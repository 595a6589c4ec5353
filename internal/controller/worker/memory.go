// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-hpc/coxswain/internal/link"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/worker"
)

// memory holds what no object has about workers. All of it may be lost: an operator that starts watches longer before it believes that a
// node is absent, and tries once more what Slurm refused.
type memory struct {
	// process distinguishes the announcements of this process from those of others.
	process string

	mu   sync.Mutex
	pods map[types.NamespacedName]*past
	// foreign is until when writes of other processes, or of this one for an earlier pod, may still let jobs onto a Slurm node.
	foreign map[slurmNode]time.Time
	// changing are pods with a Slurm node whose state is being changed. That outlives the pod: its successor has the node.
	changing map[types.NamespacedName]bool
}

// slurmNode is a node of a cluster.
type slurmNode struct {
	cluster link.Key
	name    string
}

// past is what was seen of one worker.
type past struct {
	cluster link.Key
	// slurm is the name of its Slurm node.
	slurm string
	// told is the last announcement of another process on the pod. used is the time of the announcement that we have used, sent when we used
	// it, and opening until when our write may arrive.
	told                worker.Opening
	used, sent, opening time.Time
	// seen reports whether Slurm had its node once.
	seen bool
	// held answers whether somebody else had a say in its node when Slurm reported it last.
	held node.Answer
	// absent is since when Slurm did not have its node, whenever it was asked.
	absent time.Time
	// wrote is when the state of its Slurm node was last changed by us.
	wrote time.Time
	// refused is the change that failed last, failures how often in a row, and retry when it may be tried again.
	refused  string
	failures int
	retry    time.Time
	// writing is how many parts of the record are being written, recorded is when the last of them arrived, and tried what became of them.
	writing  int
	recorded time.Time
	tried    worker.Attempt
}

// of returns the past of a pod. The caller holds the lock.
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

// changes notes that a change of the state is on its way.
func (m *memory) changes(pod types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changing == nil {
		m.changing = map[types.NamespacedName]bool{}
	}
	m.changing[pod] = true
}

// changed notes a change, whether it succeeded or not: a reply may have been lost. What Slurm reported before may not be true any more: a
// node that was drained, undrained and is to be drained again still shows as drained, and jobs may run on it. A change that failed has a
// name, under which it is not tried again too soon.
func (m *memory) changed(pod types.NamespacedName, now time.Time, failed string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.changing, pod)
	p := m.of(pod)
	p.wrote = now
	if failed == "" || failed != p.refused {
		p.failures = 0
	}
	p.refused = failed
	if failed != "" {
		p.retry = now.Add(min(time.Second<<min(p.failures, 10), maxRetryInterval))
		p.failures++
	}
}

// maxRetryInterval is the longest time before a change that keeps failing is tried again.
const maxRetryInterval = 5 * time.Minute

// refused returns until when a change is not to be tried again; zero when it may.
func (m *memory) refused(pod types.NamespacedName, change string, now time.Time) (until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.of(pod); p.refused == change && now.Before(p.retry) {
		return p.retry
	}
	return time.Time{}
}

// others notes until when writes of other processes may let jobs onto the node of a worker, before a newer announcement takes the place of
// theirs.
func (m *memory) others(n slurmNode, p *past, w *worker.Worker) {
	for of, until := range m.foreign {
		if !w.Now.Before(until) {
			delete(m.foreign, of)
		}
	}
	if w.Opening == p.told || w.Opening.By == m.process || !w.Now.Before(w.Opening.Over(w.Now)) {
		return
	}
	p.told = w.Opening
	m.remains(n, w.Opening.Over(w.Now))
}

// remains notes until when writes for one of its pods may let jobs onto a node. The caller holds the lock.
func (m *memory) remains(n slurmNode, until time.Time) {
	if m.foreign == nil {
		m.foreign = map[slurmNode]time.Time{}
	}
	m.foreign[n] = later(m.foreign[n], until)
}

// opens notes that jobs are let onto the node from now on, which uses up the announcement. It returns until when an earlier write may
// arrive.
func (m *memory) opens(pod types.NamespacedName, announced, now time.Time) (before time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.of(pod)
	before = p.opening
	p.used, p.sent, p.opening = announced, now, worker.Opening{At: announced}.Over(now)
	return before
}

// settled notes that the last write has arrived, or was not sent: only an earlier one may be under way.
func (m *memory) settled(pod types.NamespacedName, before time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(pod).opening = before
}

// openings takes what the pod shows about who lets jobs onto the node, and fills in what follows from that and from what was seen before. A
// write of this process is over when Slurm shows the node open; an announcement of another one is over after a time.
func (p *past) openings(process string, foreign time.Time, w *worker.Worker) {
	if w.Known == node.Yes && w.State.Drain() == node.No && w.State.Down() == node.No && w.Asked.After(p.sent) {
		p.opening = time.Time{}
	}
	w.OpeningUntil, w.Announced = later(foreign, p.opening), time.Time{}
	if w.Opening.By == process && !p.used.Equal(w.Opening.At) {
		w.Announced = w.Opening.At
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// writing is an update of a record that is on its way.
type writing struct {
	memory   *memory
	past     *past // which may have been forgotten meanwhile
	update   string
	problems []error
}

// records notes that an update of the record, of some parts, is on its way.
func (m *memory) records(pod types.NamespacedName, update string, parts int) *writing {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.of(pod)
	p.writing = parts
	return &writing{memory: m, past: p, update: update}
}

// told notes what became of a part.
func (w *writing) told(err error, now time.Time) {
	w.memory.mu.Lock()
	defer w.memory.mu.Unlock()
	if err != nil {
		w.problems = append(w.problems, err)
	}
	if w.past.writing--; w.past.writing > 0 {
		return
	}
	w.past.recorded, w.past.tried = now, worker.Attempt{Update: w.update, At: now}
	switch err := errors.Join(w.problems...); {
	case errors.Is(err, rest.Unavailable), errors.Is(err, link.ErrClosed):
		w.past.tried.Unanswered = true
	case err != nil:
		w.past.tried.Problem = slurmMessage(err)
	}
}

// awaits reports whether a change of the state is on its way, so that nothing can be decided.
func (m *memory) awaits(pod types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changing[pod]
}

// shows reports whether a view that was asked for at taken shows the last change. One of the same moment may not.
func (m *memory) shows(pod types.NamespacedName, taken time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.pods[pod]
	return !ok || taken.After(p.wrote)
}

// recall notes what Slurm reports of a worker, and fills in what was seen of it before.
func (m *memory) recall(pod types.NamespacedName, cluster link.Key, w *worker.Worker) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.of(pod)
	p.cluster, p.slurm = cluster, w.Slurm
	m.others(slurmNode{cluster, w.Slurm}, p, w)
	p.openings(m.process, m.foreign[slurmNode{cluster, w.Slurm}], w)
	p.held = w.HeldSince(p.held)
	w.Held = p.held
	p.seen = p.seen || w.Known == node.Yes
	w.Pod.Was = w.Pod.Was || p.seen
	switch {
	case w.Known != node.No:
		p.absent = time.Time{}
	case p.absent.IsZero():
		p.absent = w.Asked
	}
	w.Absent, w.Tried, w.Recording, w.Recorded = p.absent, p.tried, p.writing > 0, p.recorded
}

// forget drops what is known about a pod that is gone, and returns its cluster. Its successor drains and undrains anew.
func (m *memory) forget(pod types.NamespacedName) (cluster link.Key, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, known := m.pods[pod]
	delete(m.pods, pod)
	if !known {
		return link.Key{}, false
	}
	if !p.opening.IsZero() {
		m.remains(slurmNode{p.cluster, p.slurm}, p.opening)
	}
	return p.cluster, true
}
