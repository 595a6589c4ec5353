// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan

import (
	"time"

	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// Occupied answers whether a job is on the worker's node: one that runs, which the node's state shows, or a suspended one, which only the
// list of jobs shows for certain.
func (w *Worker) Occupied() node.Answer {
	if busy := w.State.Busy(); busy != node.No {
		return busy
	}
	if w.JobsKnown != node.Yes {
		return node.Unknown
	}
	return node.AnswerOf(len(w.Jobs) > 0)
}

// closed answers whether no job will start on the worker's node: it drains, or Slurm has given it up.
func (w *Worker) closed() node.Answer { return w.State.Drain().Or(w.State.Down()) }

// Free answers whether nothing is on the worker's node and nothing will start there. Only Yes lets the pod go.
func (w *Worker) Free() node.Answer { return w.closed().And(w.Occupied().Not()) }

// protected is whether the pod carries the protect label, and when that may change.
type protected struct {
	answer node.Answer
	again  time.Time
}

//nolint:gochecknoglobals // a constant list
var protections = rule.List[*facts, protected]{
	Question: "Is the pod protected from evictions?",
	Rules: []rule.Rule[*facts, protected]{
		{
			Name: "the pod is being deleted", Does: "leave the label", Why: "nothing can evict it any more",
			When: func(f *facts) bool { return f.situation == beingDeleted },
		},
		{
			Name: "the NodeSet protects nobody", Does: "no", Why: "its spec says so",
			When: func(f *facts) bool {
				return f.Protection == workerpod.Unprotected
			},
			Then: rule.Is[*facts](protected{answer: node.No}),
		},
		{
			Name: "Slurm is asked and has never answered, and workers are protected until they are drained", Does: "yes", Why: "a job may have started",
			When: func(f *facts) bool {
				return f.situation == notAnswered && f.NeverAnswered && f.Protection == workerpod.UntilDrained
			},
			Then: rule.Is[*facts](protected{answer: node.Yes}),
		},
		{
			Name: "it never started, or Slurm does not answer", Does: "leave the label", Why: "what held last may still hold",
			When: func(f *facts) bool { return f.situation <= notAnswered },
		},
		{
			Name: "it is registered under another name", Does: "yes", Why: "its jobs are not known by the name that is looked for",
			When: func(f *facts) bool { return f.situation == registeredElsewhere }, Then: rule.Is[*facts](protected{answer: node.Yes}),
		},
		{
			Name: "it is gone from Slurm for good", Does: "no", Why: "no job can be there",
			When: func(f *facts) bool { return f.situation == unregistered && f.absence.gone }, Then: rule.Is[*facts](protected{answer: node.No}),
		},
		{
			Name: "Slurm does not have it, and workers are protected until they are drained", Does: "yes", Why: "one that starts is to be protected when it has started",
			When: func(f *facts) bool { return f.situation == unregistered && f.Protection == workerpod.UntilDrained }, Then: rule.Is[*facts](protected{answer: node.Yes}),
		},
		{
			Name: "Slurm does not have it", Does: "leave the label", Why: "jobs may run there of which Slurm knows nothing any more",
			When: func(f *facts) bool { return f.situation == unregistered },
		},
		{
			Name: "workers are protected while they are busy", Does: "as long as a job is there, or leave the label where that is not known", Why: "that is what the NodeSet asks for",
			When: func(f *facts) bool { return f.Protection == workerpod.WhileBusy },
			Then: func(f *facts) protected { return protected{answer: f.Occupied()} },
		},
		{
			Name: "its protection ended before, and only suspended jobs could be there", Does: "leave the label off", Why: "it was free when its protection ended, and nothing has started there since",
			When: func(f *facts) bool { return f.wasFree() && !f.change.Opens() && !f.arriving() && !f.returns() },
		},
		{
			Name: "its slurmd may not have registered yet", Does: "yes, for a minute at most", Why: "what Slurm has on the node is what an earlier slurmd has left, and a job may start when the new one registers",
			When: func(f *facts) bool { return f.arriving() && (f.Free() == node.Yes || f.wasFree() && !f.change.Opens()) },
			Then: func(f *facts) protected {
				if f.Pod.Phase == "Pending" {
					return protected{answer: node.Yes}
				}
				return protected{answer: node.Yes, again: f.arrived()}
			},
		},
		{
			Name: "a job is on the node, or may be, or may start there", Does: "yes", Why: "what Slurm does not say may be that a job runs",
			When: func(f *facts) bool { return f.Free() != node.Yes }, Then: rule.Is[*facts](protected{answer: node.Yes}),
		},
		{
			Name: "it is about to be used again", Does: "yes", Why: "it is protected before a job can start",
			When: func(f *facts) bool { return f.change.Opens() || f.returns() }, Then: rule.Is[*facts](protected{answer: node.Yes}),
		},
		{
			Name: "a write may arrive that lets jobs onto the node", Does: "leave the label until that is over", Why: "where it is off, nothing was under way when it was taken off",
			When: (*facts).mayOpen, Then: func(f *facts) protected { return protected{again: f.OpeningUntil} },
		},
		{Name: "otherwise", Does: "no", Why: "nothing is on the node, and nothing will start there", Then: rule.Is[*facts](protected{answer: node.No})},
	},
}

// wasFree reports whether the node of a worker whose protection has ended still looks free, except for jobs that may be suspended.
func (w *Worker) wasFree() bool {
	return w.looksFree() && w.Occupied() == node.Unknown && !w.Pod.Protected
}

// looksFree reports whether the state of the node alone would let the pod go. Then the list of jobs has to be asked.
func (w *Worker) looksFree() bool { return w.closed() == node.Yes && w.State.Busy() == node.No }

// suspects reports whether the jobs of a node have to be known although it does not look busy: the pod is about to go, or its protection to
// end. Jobs may be suspended there, or a flag that is not recognised may mean jobs.
func (w *Worker) suspects() bool {
	quiet := w.State.Busy() == node.No || w.State.Doubtful()
	switch {
	case w.Pod.Retired != "":
		return quiet && w.closed() == node.Yes
	case w.Protection == workerpod.WhileBusy:
		return quiet && w.Pod.Protected
	case w.Protection == workerpod.UntilDrained:
		return quiet && w.Pod.Protected && w.closed() == node.Yes
	}
	return false
}

// opensSoon reports whether a drain is ours and has no cause any more, such as the one that retired the pod before: it ends once the new
// pod is ready. The new pod keeps its protection for the seconds until then.
func (w *Worker) opensSoon() bool {
	return w.Pod.Retired == "" && w.Reason.Ours() && w.wantedDrain() == "" && w.hostKnownWell() && !w.awaitsReboot()
}

// arriving reports whether the slurmd of a new worker may not have registered yet. Slurm's record of the node is from an earlier one, and a
// node that is DOWN and not drained is used the moment the new one registers. A pod that starts may be evicted in any case.
func (w *Worker) arriving() bool {
	return w.Pod.Phase == "Pending" || (w.State.Drain() != node.Yes || w.opensSoon()) && w.Now.Before(w.arrived())
}

// arrived returns the time by which a slurmd has registered.
func (w *Worker) arrived() time.Time {
	return workerpod.Later(w.Pod.ReadySince, w.Pod.Created).Add(registrationTimeout)
}
