// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan

import (
	"time"

	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// registrationTimeout is how long a running worker may need to register, and Slurm's view to show it. A job may start at once. An absence
// has to last as long to be believed: a list may lack a node by mistake.
const registrationTimeout = time.Minute

// lostRecheckInterval is how long to wait for another look when it is not known whether Slurm has lost its state.
const lostRecheckInterval = 10 * time.Second

// absence is whether a worker that Slurm does not have is gone from Slurm for good, and when and how to look again otherwise.
type absence struct {
	gone   bool
	relist bool
	again  time.Time
}

//nolint:gochecknoglobals // a constant list
var absences = rule.List[*facts, absence]{
	Question: "Is a worker that Slurm does not have gone from Slurm for good?",
	Rules: []rule.Rule[*facts, absence]{
		{
			Name: "it starts", Does: "no", Why: "it has not registered yet",
			When: func(f *facts) bool { return f.Pod.Phase == "Pending" },
		},
		{
			Name: "it stays and is not protected", Does: "no", Why: "nothing hangs on it",
			When: func(f *facts) bool { return f.Pod.Retired == "" && f.Protection == workerpod.Unprotected },
		},
		{
			Name: "Slurm has lost its state, and there is no spec.drainTimeout", Does: "no, and time does not change that",
			Why:  "it may have been there a moment ago, with jobs of which Slurm knows nothing any more",
			When: func(f *facts) bool { return f.SlurmStateLost == node.Yes && f.DrainTimeout == 0 },
		},
		{
			Name: "it has been absent for less than a minute", Does: "not yet", Why: "it is not enough that the minute is over: Slurm must have listed its nodes since then",
			When: func(f *facts) bool { return !f.Settled() }, Then: func(f *facts) absence { return f.lookAt(f.settled()) },
		},
		{
			Name: "Slurm has not lost its state", Does: "yes", Why: "Slurm deletes no record of a busy node",
			When: func(f *facts) bool { return f.SlurmStateLost == node.No }, Then: rule.Is[*facts](absence{gone: true}),
		},
		{
			Name: "it cannot be told whether Slurm has lost its state, and there is no spec.drainTimeout", Does: "not yet", Why: "it lacks most workers that it had",
			When: func(f *facts) bool { return f.DrainTimeout == 0 },
			Then: func(f *facts) absence { return absence{again: f.Now.Add(lostRecheckInterval)} },
		},
		{
			Name: "spec.drainTimeout runs", Does: "not yet", Why: "jobs that Slurm has forgotten have the same time as others",
			When: func(f *facts) bool { return f.NodeListTime.Before(f.forgottenDeadline()) },
			Then: func(f *facts) absence { return f.lookAt(f.forgottenDeadline()) },
		},
		{Name: "otherwise", Does: "yes", Why: "spec.drainTimeout is over for jobs that Slurm may have forgotten", Then: rule.Is[*facts](absence{gone: true})},
	},
}

// goes reports whether nothing can be there of a retired worker that Slurm does not have: it starts, or is gone for good.
func (f *facts) goes() bool { return f.Pod.Phase == "Pending" || f.absence.gone }

// lookAt waits for a list of nodes that Slurm is asked for after a time.
func (w *Worker) lookAt(at time.Time) absence {
	return absence{again: workerpod.Later(at, w.Now.Add(time.Second)), relist: !w.Now.Before(at)}
}

// Settled reports whether an absence has lasted long enough to be believed, if Slurm has not lost its state.
func (w *Worker) Settled() bool { return !w.NodeListTime.Before(w.settled()) }

func (w *Worker) settled() time.Time { return w.since().Add(registrationTimeout) }

// forgottenDeadline returns when drainTimeout is over for jobs that Slurm has forgotten, or may have.
func (w *Worker) forgottenDeadline() time.Time {
	return workerpod.Later(w.since(), w.Pod.RetiredAt).Add(w.DrainTimeout)
}

// since returns since when the worker could have been registered and is not.
func (w *Worker) since() time.Time {
	return workerpod.Later(workerpod.Later(w.Pod.ReadySince, w.Pod.Created), w.Absent)
}
