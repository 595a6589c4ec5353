// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"container/heap"
	"slices"
	"syscall"
	"time"
)

// Job is a job as it is submitted.
type Job struct {
	Name      string
	User      string // default "alice"
	Partition string // default "main"
	// Nodes is how many nodes the job needs; NodeList names them instead.
	Nodes    int
	NodeList []string
	// CPUs are needed on each node; 0 means all of them.
	CPUs int
	// Duration is how long the job runs; 0 means until it is ended by Cancel, Finish or its Limit.
	Duration time.Duration
	// ExitCode is that of the script of a job that ends after its Duration. A job FAILED where it is not 0.
	ExitCode int64
	// Limit is the time limit; 0 means none.
	Limit time.Duration
	// Preempts is true if the job is of a partition of a higher tier, with PreemptMode=SUSPEND,GANG: jobs of others that are in
	// its way are suspended until it has ended.
	Preempts bool
	// Comment, Reservation, Directory and Output are what slurmctld goes on showing. A job with a reservation runs in it alone.
	Comment, Reservation, Directory, Output string
	// KillOnNodeFail is true if a job whose node is lost fails (--no-requeue), and is not queued again.
	KillOnNodeFail bool
}

type job struct {
	Job
	id         int64
	state      string // base state
	completing bool
	nodes      []string
	submitted  time.Time
	start, end time.Time
	restarts   int
	held       bool
	reason     string // why it ended like this
	exitCode   int64
	signal     syscall.Signal // that ended its script
	suspended  time.Time      // since when
	preemptor  int64          // for which job it is suspended
	ends       time.Time      // when it ends by itself or by its limit
	stranded   bool           // it has addresses that nodes had before they were powered down
	epoch      int            // counts starts and ends, so that events of an earlier run are known
}

// An event is the end of a job, or of its completing.
type event struct {
	at    time.Time
	id    int64
	epoch int
}

// eventQueue is a heap by time, and by job for the same time.
type eventQueue []event

// Len is part of heap.Interface.
func (q eventQueue) Len() int { return len(q) }

// Less is part of heap.Interface.
func (q eventQueue) Less(i, j int) bool {
	if !q[i].at.Equal(q[j].at) {
		return q[i].at.Before(q[j].at)
	}
	return q[i].id < q[j].id
}

// Swap is part of heap.Interface.
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push is part of heap.Interface.
func (q *eventQueue) Push(x any) { *q = append(*q, x.(event)) }

// Pop is part of heap.Interface.
func (q *eventQueue) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}

// Submit queues a job and starts it at once if its nodes are free. It returns the job's ID.
func (s *Slurm) Submit(spec Job) int64 {
	defer s.lock()()
	id := s.queue(spec)
	s.schedule()
	return id
}

// SubmitAll queues many jobs and then starts those whose nodes are free.
func (s *Slurm) SubmitAll(specs ...Job) {
	defer s.lock()()
	for _, spec := range specs {
		s.queue(spec)
	}
	s.schedule()
}

func (s *Slurm) queue(spec Job) int64 {
	if spec.User == "" {
		spec.User = "alice"
	}
	if spec.Partition == "" {
		spec.Partition = "main"
	}
	if len(spec.NodeList) > 0 {
		spec.Nodes = len(spec.NodeList)
	}
	s.lastJob++
	j := &job{Job: spec, id: s.lastJob, state: "PENDING", submitted: s.clock}
	s.jobs[j.id] = j
	s.pending = append(s.pending, j.id)
	s.jobTime = s.clock
	return j.id
}

// Finish ends a running job with success, Cancel ends a job that is pending or running. Others are left alone.
func (s *Slurm) Finish(id int64) { s.endNow(id, "COMPLETED") }

// Cancel ends a job as scancel does.
func (s *Slurm) Cancel(id int64) { s.endNow(id, "CANCELLED") }

// Fail ends a running job whose script ends with a code that is not zero.
func (s *Slurm) Fail(id, code int64) {
	defer s.lock()()
	if j := s.jobs[id]; j != nil && j.state == "RUNNING" {
		j.exitCode = code
		s.end(j, "FAILED")
	}
}

// ForgetJob lets slurmctld forget a job that has ended, as it does after MinJobAge.
func (s *Slurm) ForgetJob(id int64) {
	defer s.lock()()
	if j := s.jobs[id]; j != nil && !j.end.IsZero() && !j.completing && j.state != "RUNNING" && j.state != "SUSPENDED" {
		s.forgotten = append(s.forgotten, *j)
		delete(s.jobs, id)
		s.jobTime = s.clock
	}
}

func (s *Slurm) endNow(id int64, state string) {
	defer s.lock()()
	if j := s.jobs[id]; j != nil {
		s.end(j, state)
	}
}

// end ends a job that runs, or cancels one that runs, waits or is suspended.
func (s *Slurm) end(j *job, state string) {
	switch {
	case j.state == "RUNNING", j.state == "SUSPENDED" && state == "CANCELLED":
		s.finish(j, state)
		s.schedule()
	case j.state == "PENDING" && state == "CANCELLED":
		j.reason = s.shown(j).reason
		j.state, j.start, j.end = state, s.clock, s.clock
		s.pending = slices.DeleteFunc(s.pending, func(other int64) bool { return other == j.id })
		s.jobTime = s.clock
	}
}

// JobStatus is what slurmctld has on a job.
type JobStatus struct {
	User  string
	State []string
	Nodes []string
	Start time.Time
	// Restarts counts how often the job was requeued.
	Restarts int
	// Stranded is true if its srun would look for nodes where they were before they were powered down: their records were not made with
	// State=CLOUD, and the job has kept their addresses.
	Stranded bool
}

// Job returns what slurmctld has on a job, and whether it has it.
func (s *Slurm) Job(id int64) (JobStatus, bool) {
	defer s.lock()()
	j, ok := s.jobs[id]
	if !ok {
		return JobStatus{}, false
	}
	return JobStatus{j.User, s.states(j), slices.Clone(j.nodes), j.start, j.restarts, j.stranded}, true
}

func (s *Slurm) states(j *job) []string {
	switch {
	case j.completing:
		return []string{j.state, "COMPLETING"}
	case s.waits(j):
		return []string{j.state, "CONFIGURING", "POWER_UP_NODE"}
	}
	return []string{j.state}
}

// advance lets happen, in order, everything that is due at now.
func (s *Slurm) advance(now time.Time) {
	for len(s.events) > 0 && !s.events[0].at.After(now) {
		e := heap.Pop(&s.events).(event)
		j := s.jobs[e.id]
		if j == nil || j.epoch != e.epoch {
			continue
		}
		if e.at.After(s.clock) {
			s.clock = e.at
		}
		switch {
		case j.completing:
			s.release(j)
		case j.Duration > 0 && (j.Limit == 0 || j.Duration <= j.Limit):
			s.conclude(j)
		default:
			s.finish(j, "TIMEOUT")
		}
		s.schedule()
	}
	if before := s.clock; now.After(before) {
		s.clock = now
		if s.turnReservations(before, now) {
			s.schedule()
		}
	}
}

// conclude ends a running job whose script has ended.
func (s *Slurm) conclude(j *job) {
	if j.exitCode = j.ExitCode; j.exitCode != 0 {
		s.finish(j, "FAILED")
		return
	}
	s.finish(j, "COMPLETED")
}

// schedule starts pending jobs, first come first served; a job that cannot start lets later ones pass.
func (s *Slurm) schedule() {
	if len(s.pending) == 0 {
		return
	}
	var free []*node
	for _, name := range s.order {
		if n := s.nodes[name]; n.free() {
			free = append(free, n)
		}
	}
	s.pending = slices.DeleteFunc(s.pending, func(id int64) bool {
		j := s.jobs[id]
		candidates := free
		if j.held {
			return false
		}
		if j.Preempts {
			candidates = s.all()
		}
		if len(j.NodeList) > 0 {
			candidates = nil
			for _, name := range j.NodeList {
				if n := s.nodes[name]; n != nil {
					candidates = append(candidates, n)
				}
			}
		}
		if !s.start(j, candidates) {
			return false
		}
		free = slices.DeleteFunc(free, func(n *node) bool { return !n.free() })
		return true
	})
}

// all are the nodes in Slurm's order.
func (s *Slurm) all() []*node {
	list := make([]*node, 0, len(s.order))
	for _, name := range s.order {
		list = append(list, s.nodes[name])
	}
	return list
}

// free reports whether the node may take a job, even if only a small one.
func (n *node) free() bool { return n.usable() && n.CPUs > n.allocated() }

// start starts a job on the first of the candidates that can take it, if they are enough.
func (s *Slurm) start(j *job, candidates []*node) bool {
	var nodes []string
	for _, n := range candidates {
		if len(nodes) == j.Nodes {
			break
		}
		if n.usable() && s.room(n, j) >= j.need(n) && s.open(n, j) {
			nodes = append(nodes, n.Name)
		}
	}
	if len(nodes) < j.Nodes || len(nodes) == 0 {
		return false
	}
	stranded := false
	for _, name := range nodes {
		n := s.nodes[name]
		s.preempt(n, j)
		n.running[j.id] = j.need(n)
		n.dropReason()
		stranded = stranded || n.power == PoweredDown && !n.cloud
		s.powerUp(n)
	}
	j.state, j.nodes, j.start, j.end, j.stranded = "RUNNING", nodes, s.clock, time.Time{}, stranded
	j.epoch++
	if j.Limit > 0 {
		j.end = j.start.Add(j.Limit)
	}
	if j.ends = j.endsBy(s.clock); !j.ends.IsZero() {
		heap.Push(&s.events, event{j.ends, j.id, j.epoch})
	}
	s.nodeTime, s.jobTime = s.clock, s.clock
	return true
}

// need is how many CPUs of a node the job needs.
func (j *job) need(n *node) int {
	if j.CPUs == 0 {
		return n.CPUs
	}
	return j.CPUs
}

// finish ends a running job; its nodes complete.
func (s *Slurm) finish(j *job, state string) {
	j.state, j.end = state, s.clock
	j.reason = map[string]string{"FAILED": "NonZeroExitCode", "TIMEOUT": "TimeLimit", "NODE_FAIL": "NodeDown"}[state]
	j.signal = map[string]syscall.Signal{"CANCELLED": syscall.SIGTERM, "TIMEOUT": syscall.SIGTERM, "NODE_FAIL": syscall.SIGHUP}[state]
	j.completing = true
	j.epoch++
	for _, name := range j.nodes {
		if n := s.nodes[name]; n != nil {
			n.completing[j.id] = n.running[j.id]
			delete(n.running, j.id)
			delete(n.suspended, j.id)
		}
	}
	s.nodeTime, s.jobTime = s.clock, s.clock
	if s.options.Completing == 0 {
		s.release(j)
		return
	}
	heap.Push(&s.events, event{s.clock.Add(s.options.Completing), j.id, j.epoch})
}

// release frees the nodes of a job that has ended. Slurm goes on naming them.
func (s *Slurm) release(j *job) {
	j.completing = false
	j.epoch++
	for _, name := range j.nodes {
		if n := s.nodes[name]; n != nil {
			delete(n.completing, j.id)
			n.sink()
		}
	}
	s.unpreempt(j.id)
	s.nodeTime, s.jobTime = s.clock, s.clock
}

// requeue puts a job back into the queue, held if it was suspended.
func (s *Slurm) requeue(j *job) {
	for _, name := range j.nodes {
		if n := s.nodes[name]; n != nil {
			delete(n.running, j.id)
			delete(n.suspended, j.id)
		}
	}
	j.held = j.held || j.state == "SUSPENDED"
	j.state, j.nodes, j.start, j.end = "PENDING", nil, time.Time{}, time.Time{}
	j.restarts++
	j.epoch++
	s.pending = append(s.pending, j.id)
	s.unpreempt(j.id)
	s.nodeTime, s.jobTime = s.clock, s.clock
}
