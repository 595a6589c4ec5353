// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"github.com/coxswain-hpc/coxswain/internal/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

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

// Occupied answers whether a job is on the worker's node: one that runs there, which the node's state shows, or one that is
// suspended, which only the list of jobs shows for certain.
func (w Worker) Occupied() node.Answer {
	if busy := w.State.Busy(); busy != node.No {
		return busy
	}
	if w.JobsKnown != node.Yes {
		return node.Unknown
	}
	return node.AnswerOf(len(w.Jobs) > 0)
}

// closed answers whether no job will start on the worker's node: it drains, or Slurm has given it up.
func (w Worker) closed() node.Answer { return w.State.Drain().Or(w.State.Down()) }

// Free answers whether nothing is on the worker's node and nothing will start there. Only Yes lets the pod go.
func (w Worker) Free() node.Answer { return w.closed().And(w.Occupied().Not()) }

// protect decides about the protection of a worker whose node Slurm has.
func protect(w Worker, action *Action) {
	switch w.Protection {
	case Unprotected:
	case WhileBusy:
		action.Protected = w.Occupied()
	case UntilDrained:
		// What Slurm does not say may be that a job runs. And a worker that is about to be used is protected before it is.
		action.Protected = node.AnswerOf(w.Free() != node.Yes || w.arriving(action) || action.Opens() || w.returns())
		if action.Protected == node.No && w.opening(action) {
			action.Protected = node.Unknown // it stays; where it is off, nothing was under way when it was taken off
		}
		if w.looksFree() && w.Occupied() == node.Unknown && !w.Pod.Shielded && !action.Opens() && !w.arriving(action) && !w.returns() {
			action.Protected = node.Unknown // it was free when its protection ended, and nothing has started there since
		}
	}
}

// looksFree says that the state of the node alone would let the pod go, which is when the list of jobs has to be asked.
func (w Worker) looksFree() bool { return w.closed() == node.Yes && w.State.Busy() == node.No }

// suspects says that it is to be found out whether jobs are suspended on a node that looks idle, because the pod is about to go,
// or its protection to end.
func (w Worker) suspects() bool {
	switch {
	case w.Pod.Retired != "":
		return w.looksFree()
	case w.Protection == WhileBusy:
		return w.Pod.Shielded && w.State.Busy() == node.No
	case w.Protection == UntilDrained:
		return w.Pod.Shielded && w.looksFree()
	}
	return false
}

// returns says of a worker that it is about to be used again, once our mark of the cordon is off: with the mark, by the same
// write, it is protected.
func (w Worker) returns() bool {
	return w.Pod.Retired == "" && w.NodeMarked && w.State.Drain() == node.Yes && w.State.Down() == node.No && w.Reason.Ours() && w.mayUndrain()
}

// opensSoon says of a drain that it is ours and has no cause any more, as that with which the pod before was retired: it ends once
// the new pod is ready. The protection of the new one is not taken off for the seconds until then.
func (w Worker) opensSoon() bool {
	return w.Pod.Retired == "" && w.Reason.Ours() && w.cordonCause() == "" && w.Host.Cordoned == node.No
}

// arriving says of a worker that is new that its slurmd may not have registered yet: what Slurm has on the node is what an
// earlier one has left, and a node that is DOWN and not drained is used the moment at which the new one registers. A pod that
// starts may be evicted in any case.
func (w Worker) arriving(action *Action) bool {
	if w.Pod.Phase == "Pending" {
		return true
	}
	arrived := nodeset.Later(w.Pod.ReadySince, w.Pod.Created).Add(registrationTimeout)
	if w.State.Drain() == node.Yes && !w.opensSoon() || !w.Now.Before(arrived) {
		return false
	}
	action.wake(arrived)
	return true
}
