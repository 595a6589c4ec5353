// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"fmt"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// registering is how long a running worker may need to register, and Slurm's view to show it. A job may start at once.
const registering = time.Minute

// missing decides about a worker that Slurm, asked just now, does not have.
func missing(w Worker, action *Action) {
	action.Conditions, action.ConditionsKnown, action.Protected, action.Message = nil, true, node.No, "the node is not registered"
	if w.Pod.Retired == "" {
		return
	}
	since := w.Pod.ReadySince
	if since.Before(w.Pod.Created) {
		since = w.Pod.Created
	}
	// It is not enough that the time is over: Slurm must have been asked since then.
	if settled := since.Add(registering); w.Pod.Phase != "Pending" && w.Asked.Before(settled) {
		action.Again = later(settled, w.Now.Add(time.Second))
		action.Message = "waiting to see whether the node registers"
		return
	}
	action.Delete = true
	action.Message = fmt.Sprintf("retired (%s) and not registered in Slurm", w.Pod.Retired)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
