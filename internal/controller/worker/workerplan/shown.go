// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan

import (
	"time"

	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// shownState is which conditions the pod shows of its Slurm node; if known is false they stay as they are.
type shownState struct {
	conditions []string
	known      bool
	again      time.Time
}

//nolint:gochecknoglobals // a constant list
var conditionsShown = rule.List[*facts, shownState]{
	Question: "Which SlurmNodeState conditions does the pod show?",
	Rules: []rule.Rule[*facts, shownState]{
		{
			Name: "the pod is being deleted, never started, or Slurm does not answer", Does: "leave them", Why: "what Slurm said last stays while it says nothing",
			When: func(f *facts) bool { return f.situation <= notAnswered },
		},
		{
			Name: "Slurm does not have the node", Does: "take them off", Why: "a node that Slurm does not have has no state",
			When: func(f *facts) bool { return !f.registered() }, Then: rule.Is[*facts](shownState{known: true}),
		},
		{
			Name: "it is the state that the pod before has left, or Kubernetes has not yet said that this pod runs", Does: "leave them, for a minute at most",
			Why:  "either is over in seconds, and would be one more write for each worker",
			When: (*facts).showsPredecessor,
			Then: func(f *facts) shownState { return shownState{again: f.Pod.Created.Add(registrationTimeout)} },
		},
		{
			Name: "otherwise", Does: "one condition for each part of the state", Why: "users see on the pod what Slurm says",
			Then: func(f *facts) shownState { return shownState{conditions: f.State.Conditions(), known: true} },
		},
	},
}

// showsPredecessor reports whether Slurm's record of the node is not shown yet: it is from the pod before, or Slurm heard of this pod's
// slurmd before we heard that the pod runs.
func (f *facts) showsPredecessor() bool {
	left := f.State.Down() == node.Yes && !f.Record.Started.IsZero() && f.Record.Started.Before(f.Pod.Created)
	return f.Now.Before(f.Pod.Created.Add(registrationTimeout)) && (left || f.Pod.Phase == "Pending")
}

// minWaitShown is how long a drained worker must wait for the list of jobs before its pod shows that. Of many that are scaled in, most
// would be written to just before they go, and of many that are cordoned, just before their protection ends.
const minWaitShown = 5 * time.Second

// waitShown returns from when on the pod shows that it waits for the list of jobs.
func (f *facts) waitShown() time.Time {
	return workerpod.Later(f.Reason.At, f.Pod.RetiredAt).Add(minWaitShown)
}

// waitIsBrief reports whether the worker may be gone, or lose its protection, in a moment: its node drains and looks idle, and only the
// list of jobs is missing.
func (f *facts) waitIsBrief() bool {
	ends := f.situation == retired || f.situation == staying && f.Pod.Protected
	return ends && f.State.Drain() == node.Yes && f.looksFree() && f.Occupied() == node.Unknown && f.Now.Before(f.waitShown())
}

// deadline is when the last job ends; if known is false, the pod's deadline stays.
type deadline struct {
	at    time.Time
	known bool
}

//nolint:gochecknoglobals // a constant list
var jobInterest = rule.List[*facts, bool]{
	Question: "Is Slurm asked for the jobs on the node?",
	Rules: []rule.Rule[*facts, bool]{
		{
			Name: "it is to go, and jobs run there", Does: "yes", Why: "the pod says when they end",
			When: func(f *facts) bool { return f.Pod.Retired != "" && f.State.Busy() == node.Yes }, Then: rule.Is[*facts](true),
		},
		{
			Name: "it drains for a reason of ours, and jobs run there", Does: "yes", Why: "the pod says when they end",
			When: func(f *facts) bool { return f.State.Draining() == node.Yes && f.Reason.Ours() }, Then: rule.Is[*facts](true),
		},
		{
			Name: "it looks idle, and its pod or its protection is about to go", Does: "yes", Why: "only the list of jobs shows those that are suspended",
			When: func(f *facts) bool { return f.suspects() }, Then: rule.Is[*facts](true),
		},
		{Name: "otherwise", Does: "no", Why: "nobody waits for them, and the question costs Slurm much"},
	},
}

// deadlines tell when the last job ends: docs/contributors/predecessors/slinky-workers.md#when-the-last-job-ends.
//
//nolint:gochecknoglobals // a constant list
var deadlines = rule.List[*facts, deadline]{
	Question: "When does the pod say that its last job ends?",
	Rules: []rule.Rule[*facts, deadline]{
		{
			Name: "no job is there", Does: "nothing", Why: "there is no job to wait for",
			When: func(f *facts) bool { return f.Occupied() == node.No || f.State.Busy() == node.No && !f.suspects() }, Then: rule.Is[*facts](deadline{known: true}),
		},
		{
			Name: "only suspended jobs are there", Does: "never", Why: "nobody knows when they go on",
			When: func(f *facts) bool { return f.State.Busy() == node.No && f.Occupied() == node.Yes }, Then: rule.Is[*facts](deadline{at: workerpod.Never(), known: true}),
		},
		{
			Name: "the jobs are not known", Does: "leave what the pod says", Why: "somebody else may have asked",
			When: func(f *facts) bool { return !jobInterest.Decide(f) || f.JobsKnown != node.Yes || len(f.Jobs) == 0 },
		},
		{
			Name: "the last job has no time limit", Does: "never", Why: "Slurm never ends it",
			When: func(f *facts) bool { return f.Jobs[len(f.Jobs)-1].End.IsZero() }, Then: rule.Is[*facts](deadline{at: workerpod.Never(), known: true}),
		},
		{
			Name: "otherwise", Does: "the end of the last job", Why: "Slurm ends it then at the latest",
			Then: func(f *facts) deadline { return deadline{at: f.Jobs[len(f.Jobs)-1].End, known: true} },
		},
	},
}
