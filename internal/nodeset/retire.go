// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"fmt"
	"strings"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// Deletion is the cause for which the workers of a NodeSet go that is being deleted.
const Deletion Cause = "deletion"

// retire drains the node of a retired worker, and deletes the pod when no job is left on it.
func retire(w Worker, action *Action) {
	reason := node.OurReason(retiredReason)
	drain, is := w.State.Drain(), "drained"
	if drain != node.Yes {
		is = "down"
	}
	switch {
	case w.Free() == node.Yes:
		action.Delete = true
		action.Message = fmt.Sprintf("retired (%s) and %s", w.Pod.Retired, is)
		return
	case drain == node.Unknown:
		action.Message = "waiting for Slurm to say whether the node drains"
		return
	case drain == node.No && w.State.Down() != node.Yes:
		action.Drain = reason
		action.Message = "draining"
		return
	}
	action.Message = waiting(w)
	switch {
	case drain == node.No, !w.Reason.Ours():
	case !strings.Contains(w.Reason.Plain(), pendingTermination) && w.Occupied() == node.Unknown:
		// It may go in a moment, and needs no other reason for that.
	case !strings.Contains(w.Reason.Plain(), pendingTermination):
		// It was drained for something else before. Its jobs have their time from now on.
		action.Drain = reason
	case w.DrainTimeout > 0 && !w.Reason.At.IsZero():
		overtime(w, action)
	}
}

// pendingTermination is in every reason of a retirement, those of slurm-operator included, which name the pod.
const pendingTermination = "cordoned pending termination"

// overtime deletes the pod when its jobs have had their time.
func overtime(w Worker, action *Action) {
	deadline := w.Reason.At.Add(w.DrainTimeout)
	if w.Now.Before(deadline) {
		action.wake(deadline)
		action.Message += "; spec.drainTimeout ends them at " + deadline.UTC().Format(time.RFC3339)
		return
	}
	action.Delete = true
	action.Message = fmt.Sprintf("retired (%s), and spec.drainTimeout of %s is over", w.Pod.Retired, w.DrainTimeout)
}
