// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"fmt"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// Worker is one worker pod and what Slurm says of its node.
type Worker struct {
	Now time.Time
	// Pod is the pod; of it only the name, the marks and whether it is ready or going count.
	Pod Pod
	// Known says whether Slurm has the node: Unknown whenever Slurm did not say so just now.
	Known node.Answer
	// State and Reason are the node's, as Slurm said just now; State is the zero State otherwise.
	State  node.State
	Reason node.Reason
	// Why says why Slurm's view is not known, for people.
	Why string
	// DrainTimeout is how long a retired worker may keep its jobs after the drain has begun; zero means for ever.
	DrainTimeout time.Duration
	// Protect says that the NodeSet wants busy workers kept from being evicted.
	Protect bool
}

// Action is what to do about one worker next.
type Action struct {
	// Drain is the reason to drain the node with; empty for no drain.
	Drain string
	// Undrain says that a drain of ours is to be ended.
	Undrain bool
	// Delete says that the pod is to be deleted now.
	Delete bool
	// Message says why, or what is waited for.
	Message string
	// Protected is whether the pod carries the protect label. It is Unknown while Slurm's view is, and the label then stays
	// as it is.
	Protected node.Answer
	// Conditions are the types of the SlurmNodeState conditions that hold; nil, with ConditionsKnown false, leaves them.
	Conditions      []string
	ConditionsKnown bool
	// Again is when the action may change by the mere passing of time; zero when it does not.
	Again time.Time
}

// Next decides about one worker. It never deletes on an unknown answer, and never touches a drain that is not ours.
func Next(w Worker) Action {
	if w.Pod.Terminating {
		return Action{Message: "the pod is being deleted"}
	}
	if w.Known == node.Unknown {
		return Action{Message: "Slurm's view of the node is not known: " + w.Why}
	}
	if w.Known == node.No {
		return missing(w)
	}
	action := Action{Conditions: w.State.Conditions(), ConditionsKnown: true, Protected: node.No}
	if w.Protect {
		action.Protected = w.State.Busy()
	}
	switch {
	case w.Pod.Retired != "":
		retire(w, &action)
	case w.Pod.Cordoned:
		if w.State.Drain() == node.No {
			action.Drain = node.OurReason("Pod " + w.Pod.Name + " was cordoned")
		}
		action.Message = "the pod is cordoned"
	case w.State.Drain() == node.Yes && w.Reason.Ours() && w.Pod.Ready:
		action.Undrain = true
		action.Message = "nobody wants the node drained any more"
	}
	return action
}

// missing decides about a worker that Slurm, asked just now, does not have.
func missing(w Worker) Action {
	action := Action{Conditions: nil, ConditionsKnown: true, Protected: node.No, Message: "the node is not registered"}
	if w.Pod.Retired != "" {
		action.Delete = true
		action.Message = fmt.Sprintf("retired (%s) and not registered in Slurm", w.Pod.Retired)
	}
	return action
}

func retire(w Worker, action *Action) {
	switch w.State.Drain() {
	case node.No:
		action.Drain = node.OurReason(fmt.Sprintf("Pod %s was cordoned pending termination (%s)", w.Pod.Name, w.Pod.Retired))
		action.Message = "draining"
		return
	case node.Unknown:
		action.Message = "waiting for Slurm to say whether the node drains"
		return
	}
	if w.State.Drained() == node.Yes {
		action.Delete = true
		action.Message = fmt.Sprintf("retired (%s) and drained", w.Pod.Retired)
		return
	}
	action.Message = "waiting for jobs to end"
	if w.DrainTimeout <= 0 || w.Reason.At.IsZero() || !w.Reason.Ours() {
		return
	}
	deadline := w.Reason.At.Add(w.DrainTimeout)
	if w.Now.Before(deadline) {
		action.Again = deadline
		action.Message = fmt.Sprintf("waiting for jobs to end until %s", deadline.UTC().Format(time.RFC3339))
		return
	}
	action.Delete = true
	action.Message = fmt.Sprintf("retired (%s), and spec.drainTimeout of %s is over", w.Pod.Retired, w.DrainTimeout)
}
