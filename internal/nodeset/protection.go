// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import "github.com/coxswain-hpc/coxswain/internal/slurm/node"

// Protection is how far workers are kept from being evicted: docs/decisions/009.
type Protection int8

// The protections.
const (
	// Unprotected workers may be evicted at any time.
	Unprotected Protection = iota
	// WhileBusy keeps workers on which jobs run. One may have started since Slurm was asked last.
	WhileBusy
	// UntilDrained keeps workers, from when they are made until Slurm says that nothing runs there and nothing will start.
	UntilDrained
)

// Free answers whether nothing runs on the worker's node and nothing will start there: it is drained, or Slurm has given it
// up. Only Yes lets the pod go.
func (w Worker) Free() node.Answer {
	return w.State.Drained().Or(w.State.Down().And(w.State.Busy().Not()))
}

// protect decides about the protection of a worker whose node Slurm has.
func protect(w Worker, action *Action) {
	switch w.Protection {
	case Unprotected:
	case WhileBusy:
		action.Protected = w.State.Busy()
	case UntilDrained:
		// What Slurm does not say may be that a job runs. And a worker that is about to be used is protected before it is.
		action.Protected = node.AnswerOf(w.Free() != node.Yes || w.arriving(action) || action.Opens())
	}
}

// arriving says of a worker that is new that its slurmd may not have registered yet: what Slurm has on the node is what an
// earlier one has left, and a node that is DOWN and not drained is used the moment at which the new one registers. A pod that
// starts may be evicted in any case.
func (w Worker) arriving(action *Action) bool {
	if w.Pod.Phase == "Pending" {
		return true
	}
	arrived := later(w.Pod.ReadySince, w.Pod.Created).Add(registering)
	if w.State.Drain() == node.Yes || !w.Now.Before(arrived) {
		return false
	}
	action.wake(arrived)
	return true
}
