// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// Deletion is the cause for which the workers of a NodeSet go that is being deleted.
const Deletion nodeset.Cause = "deletion"

// retire drains the node of a retired worker, and deletes the pod when no job is left on it. A node that is DOWN is drained as
// well: its slurmd may be heard of again at any moment, and then a job would start there.
func retire(w Worker, action *Action) {
	drain := w.State.Drain()
	switch {
	case drain == node.Unknown:
		action.Message = "waiting for Slurm to say whether the node drains"
		return
	case drain == node.No:
		action.Drain = w.retiring()
		action.Message = "draining"
		return
	case w.Free() == node.Yes && w.opening(action):
		action.Message = "waiting until nothing is under way that would let jobs start"
		return
	case w.Free() == node.Yes:
		action.Delete = true
		action.Message = fmt.Sprintf("retired (%s) and drained", w.Pod.Retired)
		return
	}
	action.Message = waiting(w)
	if shown := nodeset.Later(w.Reason.At, w.Pod.RetiredAt).Add(minWaitShown); w.looksFree() && w.Occupied() == node.Unknown && w.Now.Before(shown) {
		action.Brief = true
		action.wake(shown)
	}
	switch {
	case !w.Reason.Ours():
	case !w.toGo() && w.Occupied() == node.Unknown:
		// It may go in a moment, and needs no other reason for that.
	case !w.toGo():
		// It was drained for something else before. Its jobs have their time from now on.
		action.Drain = node.OurReason(retiredReason)
	case w.DrainTimeout > 0 && !w.Reason.At.IsZero():
		overtime(w, action)
	}
}

// minWaitShown is how long what a retired worker waits for is not shown. Of many that are scaled in, most would be written to just before they go.
const minWaitShown = 5 * time.Second

// retiring is the reason to drain the node of a retired worker with. What somebody else says about a node that is DOWN stays
// readable in it.
func (w Worker) retiring() string {
	if w.State.Down() == node.Yes && !w.Reason.Ours() && w.Reason.Text != "" {
		return node.OurReason(retiredReason + " (before: " + w.Reason.Text + ")")
	}
	return node.OurReason(retiredReason)
}

// pendingTermination is in every reason of a retirement, those of slurm-operator included, which name the pod.
const pendingTermination = "cordoned pending termination"

// overtime deletes the pod when its jobs have had their time: from when the node was drained, but not for an earlier
// retirement. Slurm does not change the time of a reason that it is given again.
func overtime(w Worker, action *Action) {
	deadline := nodeset.Later(w.Reason.At, w.Pod.RetiredAt).Add(w.DrainTimeout)
	if w.Now.Before(deadline) {
		action.wake(deadline)
		action.Message += "; spec.drainTimeout ends them at " + deadline.UTC().Format(time.RFC3339)
		return
	}
	action.Delete = true
	action.Message = fmt.Sprintf("retired (%s), and spec.drainTimeout of %s is over", w.Pod.Retired, w.DrainTimeout)
}
