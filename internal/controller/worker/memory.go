// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/perkey"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// memory holds what no object has about workers. All of it may be lost: an operator that starts watches longer before it believes that a
// node is absent, and tries once more what Slurm refused.
type memory struct {
	pending   pendingWrites
	retries   retries
	announced announcements
	sightings sightings
	records   recordWrites
}

// changed notes that a change of the state has ended, whether it succeeded or not: a reply may have been lost. A change that failed has a
// name, under which it is not tried again too soon.
func (m *memory) changed(pod types.NamespacedName, now time.Time, failed string) {
	m.retries.tried(pod, now, failed) // first: nothing is decided about the worker before the change has ended
	m.pending.end(pod, now)
}

// recall notes what Slurm reports of a worker, and fills in what was seen of it before.
func (m *memory) recall(pod types.NamespacedName, cluster slurmcache.Key, w *workerplan.Worker) {
	m.announced.recall(pod, slurmNode{cluster, w.Slurm}, w)
	m.sightings.recall(pod, w)
	m.records.recall(pod, w)
}

// forget drops what is known about a pod that is gone, and returns its cluster; zero when nothing was known. Its successor drains and
// undrains anew.
func (m *memory) forget(pod types.NamespacedName) (cluster slurmcache.Key) {
	m.pending.forget(pod)
	m.retries.pods.Forget(pod)
	m.sightings.pods.Forget(pod)
	m.records.pods.Forget(pod)
	return m.announced.forget(pod).cluster
}

// pendingWrites remember the changes of the states of Slurm nodes that are on their way, and when the last one of each node has ended.
type pendingWrites struct {
	pods perkey.Memory[types.NamespacedName, pendingWrite]
}

type pendingWrite struct {
	// underWay outlives the pod: its successor has the node.
	underWay bool
	// ended is when the state of its Slurm node was last changed by us.
	ended time.Time
}

// begin notes that a change of the state is on its way.
func (p *pendingWrites) begin(pod types.NamespacedName) {
	p.pods.Change(pod, func(w *pendingWrite) bool { w.underWay = true; return true })
}

func (p *pendingWrites) end(pod types.NamespacedName, now time.Time) {
	p.pods.Set(pod, pendingWrite{ended: now})
}

// has reports whether a change of the state is on its way, so that nothing can be decided.
func (p *pendingWrites) has(pod types.NamespacedName) bool { return p.pods.Get(pod).underWay }

// shownAt reports whether a view that was asked for at taken shows the last change. One of the same moment may not. What Slurm reported
// before may not be true any more: a node that was drained, undrained and is to be drained again still shows as drained, and jobs may run
// on it.
func (p *pendingWrites) shownAt(pod types.NamespacedName, taken time.Time) bool {
	ended := p.pods.Get(pod).ended
	return ended.IsZero() || taken.After(ended)
}

func (p *pendingWrites) forget(pod types.NamespacedName) {
	p.pods.Change(pod, func(w *pendingWrite) bool { w.ended = time.Time{}; return w.underWay })
}

// retries remember the changes of the states of Slurm nodes that failed, and hold them back for longer each time.
type retries struct {
	pods perkey.Memory[types.NamespacedName, retry]
}

type retry struct {
	// change is the one that failed last, failures how often in a row, and at when it may be tried again.
	change   string
	failures int
	at       time.Time
}

// maxRetryInterval is the longest time before a change that keeps failing is tried again.
const maxRetryInterval = 5 * time.Minute

// tried notes the change that failed; empty when the last one succeeded.
func (r *retries) tried(pod types.NamespacedName, now time.Time, failed string) {
	r.pods.Change(pod, func(p *retry) bool {
		if failed != p.change {
			p.failures = 0
		}
		p.change, p.at = failed, now.Add(min(time.Second<<min(p.failures, 10), maxRetryInterval))
		p.failures++
		return failed != ""
	})
}

// until returns until when a change is not to be tried again; zero when it may.
func (r *retries) until(pod types.NamespacedName, change string, now time.Time) time.Time {
	if p := r.pods.Get(pod); p.change == change && now.Before(p.at) {
		return p.at
	}
	return time.Time{}
}

// sightings remember how Slurm had the node of a worker whenever it was asked.
type sightings struct {
	pods perkey.Memory[types.NamespacedName, sighting]
}

type sighting struct {
	// seen reports whether Slurm had its node once.
	seen bool
	// held answers whether somebody else had a say in its node when Slurm reported it last.
	held node.Answer
	// absent is since when Slurm did not have its node, whenever it was asked.
	absent time.Time
}

// recall notes what Slurm reports now, and fills in what it reported before.
func (s *sightings) recall(pod types.NamespacedName, w *workerplan.Worker) {
	s.pods.Change(pod, func(p *sighting) bool {
		p.held = w.HeldSince(p.held)
		p.seen = p.seen || w.Registered == node.Yes
		switch {
		case w.Registered != node.No:
			p.absent = time.Time{}
		case p.absent.IsZero():
			p.absent = w.SnapshotTime
		}
		w.Held, w.Absent, w.Pod.Was = p.held, p.absent, w.Pod.Was || p.seen
		return true
	})
}
