// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"container/heap"
	"slices"
	"time"
)

// Suspend suspends a running job, as "scontrol suspend" does. Its processes and its memory stay where they are, its CPUs are
// free for others: a node with nothing but suspended jobs is IDLE, or MIXED where memory is a resource (Options.Memory).
func (s *Slurm) Suspend(id int64) {
	defer s.lock()()
	if j := s.jobs[id]; j != nil && j.state == "RUNNING" {
		s.suspend(j)
		s.schedule()
	}
}

// Resume lets a suspended job go on.
func (s *Slurm) Resume(id int64) {
	defer s.lock()()
	if j := s.jobs[id]; j != nil && j.state == "SUSPENDED" {
		s.resume(j)
	}
}

// Requeue puts a job that runs or is suspended back into the queue. One that was suspended is held there.
func (s *Slurm) Requeue(id int64) {
	defer s.lock()()
	if j := s.jobs[id]; j != nil && (j.state == "RUNNING" || j.state == "SUSPENDED") {
		s.requeue(j)
		s.schedule()
	}
}

// Hold keeps a pending job from starting, Release lets it.
func (s *Slurm) Hold(id int64) { s.setHeld(id, true) }

// Release lets a held job start.
func (s *Slurm) Release(id int64) { s.setHeld(id, false) }

func (s *Slurm) setHeld(id int64, held bool) {
	defer s.lock()()
	if j := s.jobs[id]; j != nil && j.state == "PENDING" {
		j.held, s.jobTime = held, s.clock
		s.schedule()
	}
}

func (s *Slurm) suspend(j *job) {
	j.state, j.suspended = "SUSPENDED", s.clock
	j.epoch++
	for _, name := range j.nodes {
		if n := s.nodes[name]; n != nil {
			n.suspended[j.id] = n.running[j.id]
			delete(n.running, j.id)
		}
	}
	s.nodeTime, s.jobTime = s.clock, s.clock
}

func (s *Slurm) resume(j *job) {
	j.state, j.preemptor = "RUNNING", 0
	lost := s.clock.Sub(j.suspended)
	if !j.end.IsZero() {
		j.end = j.end.Add(lost)
	}
	if !j.ends.IsZero() {
		j.ends = j.ends.Add(lost)
		heap.Push(&s.events, event{j.ends, j.id, j.epoch})
	}
	for _, name := range j.nodes {
		if n := s.nodes[name]; n != nil {
			n.running[j.id] = n.suspended[j.id]
			delete(n.suspended, j.id)
		}
	}
	s.nodeTime, s.jobTime = s.clock, s.clock
}

// preempt suspends the jobs that keep a node from one that preempts them.
func (s *Slurm) preempt(n *node, by *job) {
	for _, id := range s.preempted(n) {
		if n.CPUs-n.allocated() >= by.need(n) {
			return
		}
		j := s.jobs[id]
		s.suspend(j)
		j.preemptor = by.id
		s.preemptedBy[by.id] = append(s.preemptedBy[by.id], id)
	}
}

// preempted are the jobs on a node that can be preempted, the youngest first.
func (s *Slurm) preempted(n *node) []int64 {
	var ids []int64
	for id := range n.running {
		if !s.jobs[id].Preempts {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	return ids
}

// room is how many CPUs of a node a job could have.
func (s *Slurm) room(n *node, j *job) int {
	room := n.CPUs - n.allocated()
	if j.Preempts {
		for _, id := range s.preempted(n) {
			room += n.running[id]
		}
	}
	return room
}

// unpreempt resumes the jobs that were suspended for one that has ended.
func (s *Slurm) unpreempt(by int64) {
	waiting := s.preemptedBy[by]
	delete(s.preemptedBy, by)
	for _, id := range waiting {
		if j := s.jobs[id]; j.preemptor == by && j.state == "SUSPENDED" {
			s.resume(j)
		}
	}
}

// miss ends the jobs that have lost a node, as slurmctld does when it reads its configuration: those that wait and name it, and those
// that are suspended on it. A node is not busy to Slurm when the jobs on it are suspended, and its record can be deleted below them.
func (s *Slurm) miss() {
	gone := func(name string) bool { return s.nodes[name] == nil }
	for _, j := range s.jobs {
		switch {
		case j.state == "PENDING" && s.unnameable(j.NodeList):
			s.pending = slices.DeleteFunc(s.pending, func(id int64) bool { return id == j.id })
		case j.state != "SUSPENDED" || !slices.ContainsFunc(j.nodes, gone):
			continue
		}
		j.state, j.end = "NODE_FAIL", s.clock
		j.epoch++
		for _, name := range j.nodes {
			if n := s.nodes[name]; n != nil {
				delete(n.suspended, j.id)
			}
		}
		s.nodeTime, s.jobTime = s.clock, s.clock
	}
}

// unnameable reports whether slurmctld ends a job that names these nodes: when it has no record of one of them, and before 25.05 of any.
func (s *Slurm) unnameable(names []string) bool {
	missing := 0
	for _, name := range names {
		if s.nodes[name] == nil {
			missing++
		}
	}
	return missing > 0 && (!s.old() || missing == len(names))
}

// occupied reports whether only suspended jobs keep a node from being idle.
func (s *Slurm) occupied(n *node) bool { return s.options.Memory && len(n.suspended) > 0 }

// endsBy is the time at which a job that starts now ends by itself, or zero.
func (j *job) endsBy(now time.Time) time.Time {
	lasts := j.Duration
	if j.Limit > 0 && (lasts == 0 || lasts > j.Limit) {
		lasts = j.Limit
	}
	if lasts == 0 {
		return time.Time{}
	}
	return now.Add(lasts)
}
