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
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// announcements remember who lets jobs onto Slurm nodes: this process, or another one that believes to lead (docs/decisions/015).
type announcements struct {
	// process distinguishes the announcements of this process from those of others.
	process string
	pods    perkey.Memory[types.NamespacedName, announced]
	// foreign is until when writes of other processes, or of this one for an earlier pod, may still let jobs onto a Slurm node.
	foreign perkey.Memory[slurmNode, time.Time]
}

// slurmNode is a node of a cluster.
type slurmNode struct {
	cluster slurmcache.Key
	name    string
}

// announced is what was seen of one worker.
type announced struct {
	node slurmNode
	// told is the last announcement of another process on the pod. used is the time of the announcement that we have used, sent when we used
	// it, and opening until when our write may arrive.
	told                workerpod.Opening
	used, sent, opening time.Time
}

// recall takes what the pod shows about who lets jobs onto the node, and fills in what follows from that and from what was seen before.
func (a *announcements) recall(pod types.NamespacedName, n slurmNode, w *workerplan.Worker) {
	a.pods.Change(pod, func(p *announced) bool {
		p.node = n
		a.others(p, w)
		p.openings(a.process, a.foreign.Get(n), w)
		return true
	})
}

// others notes until when writes of other processes may let jobs onto the node of a worker, before a newer announcement takes the place of
// theirs.
func (a *announcements) others(p *announced, w *workerplan.Worker) {
	a.foreign.DeleteFunc(func(_ slurmNode, until time.Time) bool { return !w.Now.Before(until) })
	if w.Opening == p.told || w.Opening.By == a.process || !w.Now.Before(w.Opening.Over(w.Now)) {
		return
	}
	p.told = w.Opening
	a.remains(p.node, w.Opening.Over(w.Now))
}

// remains notes until when writes for one of its pods may let jobs onto a node.
func (a *announcements) remains(n slurmNode, until time.Time) {
	a.foreign.Change(n, func(known *time.Time) bool { *known = workerpod.Later(*known, until); return true })
}

// openings fills in what follows for a worker. A write of this process is over when Slurm shows the node open; an announcement of another
// one is over after a time.
func (p *announced) openings(process string, foreign time.Time, w *workerplan.Worker) {
	if w.Registered == node.Yes && w.State.Drain() == node.No && w.State.Down() == node.No && w.SnapshotTime.After(p.sent) {
		p.opening = time.Time{}
	}
	w.OpeningUntil, w.Announced = workerpod.Later(foreign, p.opening), time.Time{}
	if w.Opening.By == process && !p.used.Equal(w.Opening.At) {
		w.Announced = w.Opening.At
	}
}

// opens notes that jobs are let onto the node from now on, which uses up the announcement. It returns until when an earlier write may
// arrive.
func (a *announcements) opens(pod types.NamespacedName, at, now time.Time) (before time.Time) {
	a.pods.Change(pod, func(p *announced) bool {
		before = p.opening
		p.used, p.sent, p.opening = at, now, workerpod.Opening{At: at}.Over(now)
		return true
	})
	return before
}

// settled notes that the last write has arrived, or was not sent: only an earlier one may be under way.
func (a *announcements) settled(pod types.NamespacedName, before time.Time) {
	a.pods.Change(pod, func(p *announced) bool { p.opening = before; return true })
}

// forget drops a pod that is gone, and returns its node. What may still let jobs onto the node is kept for the pod that follows.
func (a *announcements) forget(pod types.NamespacedName) slurmNode {
	p := a.pods.Get(pod)
	if !p.opening.IsZero() {
		a.remains(p.node, p.opening)
	}
	a.pods.Forget(pod)
	return p.node
}
