// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan_test

import (
	"github.com/google/go-cmp/cmp"

	"time"

	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// wanted is an Action without its parts, so that tables can write only what they are about.
type wanted struct {
	Drain                          string
	Undrain, Announce              bool
	Delete, NeverStarted           bool
	Message                        string
	Protected, NodeMark            node.Answer
	Conditions                     []string
	ConditionsKnown, DeadlineKnown bool
	Relist, WantJobs, WaitsForJobs bool
	Again                          time.Time
}

// action returns the Action.
func (w wanted) action() workerplan.Action {
	return workerplan.Action{
		StateChange: workerplan.StateChange{Drain: w.Drain, Undrain: w.Undrain},
		Announce:    w.Announce,
		Deletion:    workerplan.Deletion{Delete: w.Delete, NeverStarted: w.NeverStarted},
		Marks:       workerplan.Marks{Protected: w.Protected, NodeMark: w.NodeMark, DeadlineKnown: w.DeadlineKnown},
		Shown:       workerplan.Shown{Message: w.Message, WaitsForJobs: w.WaitsForJobs, Conditions: w.Conditions, ConditionsKnown: w.ConditionsKnown},
		Questions:   workerplan.Questions{Relist: w.Relist, WantJobs: w.WantJobs},
		Again:       w.Again,
	}
}

// diff returns how an action differs, whichever rules decided it.
func (w wanted) diff(got workerplan.Action) string {
	got.Rules, got.Shown.Why = nil, ""
	return cmp.Diff(w.action(), got)
}
