// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/worker"
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
func (w wanted) action() worker.Action {
	return worker.Action{
		StateChange: worker.StateChange{Drain: w.Drain, Undrain: w.Undrain},
		Announce:    w.Announce,
		Deletion:    worker.Deletion{Delete: w.Delete, NeverStarted: w.NeverStarted},
		Marks:       worker.Marks{Protected: w.Protected, NodeMark: w.NodeMark, DeadlineKnown: w.DeadlineKnown},
		Shown:       worker.Shown{Message: w.Message, WaitsForJobs: w.WaitsForJobs, Conditions: w.Conditions, ConditionsKnown: w.ConditionsKnown},
		Questions:   worker.Questions{Relist: w.Relist, WantJobs: w.WantJobs},
		Again:       w.Again,
	}
}
