// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"fmt"
	"time"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// registering is how long a running worker may need to register, and Slurm's view to show it. A job may start at once.
// As long an absence has to last to be believed: a list may lack a node by mistake.
const registering = time.Minute

// missing decides about a worker that Slurm, asked just now, does not have.
func missing(w Worker, action *Action) {
	action.Conditions, action.ConditionsKnown, action.Protected, action.Message = nil, true, node.No, "the node is not registered"
	if w.Pod.Retired == "" {
		return // Make decides whether it is made anew
	}
	since := w.Pod.ReadySince
	for _, at := range []time.Time{w.Pod.Created, w.Absent} {
		if since.Before(at) {
			since = at
		}
	}
	// It is not enough that the time is over: Slurm must have been asked since then.
	if settled := since.Add(registering); w.Pod.Phase != "Pending" && w.Asked.Before(settled) {
		action.wake(later(settled, w.Now.Add(time.Second)))
		action.Message = "waiting to see whether the node registers"
		return
	}
	action.Delete = true
	action.Message = fmt.Sprintf("retired (%s) and not registered in Slurm", w.Pod.Retired)
	if w.Pod.Retired == Unregistered {
		// A slurmd registers when it starts, and nobody can make it do so again. Slurm deletes no record of a busy node.
		action.Cause = slinkyv1beta1.ReasonSlurmNodeNotRegistered
		action.Message = "slurmd runs, and Slurm does not have its node, which registers when it starts"
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
