// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// What we say to Slurm about a drain. The texts name no pod: the comment of the node does, and Slurm takes one reason for
// any number of nodes, so that a thousand of them are drained by one call.
const (
	retiredReason     = "Pod was cordoned pending termination"
	podCordonedReason = "Pod was cordoned"
	nodeCordonReason  = "Node was cordoned"
)

// cordon keeps Slurm's drain in line with the cordon of the Kubernetes node and with the mark on the pod, unless somebody
// else has said something about the Slurm node: contract slinky.md §4.5.
func cordon(w Worker, action *Action) {
	cause := w.cordonCause()
	switch {
	case w.NodeMarked && w.Host.Cordoned == node.No:
		// The mark goes first. What is left of the cordon on the pod is then a user's, or nothing.
	case w.State.Down() != node.No:
		// It takes no jobs, and its reason may be an administrator's, or one that Slurm lifts when the node comes back.
	case cause != "" && w.State.Drain() == node.No:
		action.Drain = node.OurReason(cause)
	case cause != "" && w.State.Drain() == node.Yes && w.Reason.Ours() && w.toGo() && !strings.Contains(cause, pendingTermination):
		action.Drain = node.OurReason(cause) // it was to go, and is kept
	case cause == "" && w.State.Drain() == node.Yes && w.Reason.Ours() && w.mayUndrain():
		action.Undrain = true
		action.Message = "nobody wants the node drained any more"
	}
	if cause != "" {
		action.Message = "the pod is cordoned"
	}
	if w.Host.Cordoned == node.Yes {
		action.Message = "Kubernetes node " + w.Host.Name + " is cordoned"
	}
}

// toGo says that the node is drained because the worker was to go.
func (w Worker) toGo() bool { return strings.Contains(w.Reason.Plain(), pendingTermination) }

// cordonCause is why the node of a worker that stays is to be drained; empty for no reason.
func (w Worker) cordonCause() string {
	switch {
	case w.Host.Cordoned == node.Yes:
		return cmp.Or(node.SanitizeReason(w.Host.CordonReason), nodeCordonReason)
	case w.Pod.Cordoned:
		return podCordonedReason
	}
	return ""
}

// mayUndrain says that the worker can take jobs, and that nothing that we do not know speaks against it.
func (w Worker) mayUndrain() bool {
	return w.Pod.Ready && w.Host.Cordoned == node.No && w.State.NotResponding() == node.No
}
