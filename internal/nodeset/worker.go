// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"fmt"
	"strings"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// Worker is one worker pod and what Slurm says of its node.
type Worker struct {
	Now time.Time
	// Pod is the pod; of it only the name, the marks and whether it is ready or going count.
	Pod Pod
	// Asked is when Slurm was asked for what follows.
	Asked time.Time
	// Known says whether Slurm has the node: Unknown whenever Slurm did not say so just now.
	Known node.Answer
	// State and Reason are the node's, as Slurm said just now; State is the zero State otherwise.
	State  node.State
	Reason node.Reason
	// Why says why Slurm's view is not known, for people, and Again when to look once more; zero when a change will tell.
	Why   string
	Again time.Time
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
		return Action{Message: "Slurm's view of the node is not known: " + w.Why, Again: w.Again}
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
		// A node that is down has a reason already, which may be an administrator's.
		if w.State.Drain() == node.No && w.State.Down() == node.No {
			action.Drain = node.OurReason("Pod " + w.Pod.Name + " was cordoned")
		}
		action.Message = "the pod is cordoned"
	case w.State.Drain() == node.Yes && w.Reason.Ours() && w.Pod.Ready:
		action.Undrain = true
		action.Message = "nobody wants the node drained any more"
	}
	return action
}

// registering is how long a running worker may need to register, and Slurm's view to show it. A job may start at once.
const registering = time.Minute

// missing decides about a worker that Slurm, asked just now, does not have.
func missing(w Worker) Action {
	action := Action{Conditions: nil, ConditionsKnown: true, Protected: node.No, Message: "the node is not registered"}
	if w.Pod.Retired == "" {
		return action
	}
	since := w.Pod.ReadySince
	if since.Before(w.Pod.Created) {
		since = w.Pod.Created
	}
	// It is not enough that the time is over: Slurm must have been asked since then.
	if settled := since.Add(registering); w.Pod.Phase != "Pending" && w.Asked.Before(settled) {
		action.Again = later(settled, w.Now.Add(time.Second))
		action.Message = "waiting to see whether the node registers"
		return action
	}
	action.Delete = true
	action.Message = fmt.Sprintf("retired (%s) and not registered in Slurm", w.Pod.Retired)
	return action
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// retire drains the node of a retired worker, and deletes the pod when no job is left on it.
func retire(w Worker, action *Action) {
	begun := "Pod " + w.Pod.Name + " was cordoned pending termination"
	reason := node.OurReason(fmt.Sprintf("%s (%s)", begun, w.Pod.Retired))
	switch w.State.Drain() {
	case node.No:
		switch {
		case w.State.Down() != node.Yes:
			action.Drain = reason
			action.Message = "draining"
		case w.State.Busy() == node.No:
			action.Delete = true
			action.Message = fmt.Sprintf("retired (%s) and down", w.Pod.Retired)
		default:
			action.Message = "waiting for jobs to end"
		}
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
	if w.DrainTimeout <= 0 || !w.Reason.Ours() {
		return
	}
	if !strings.HasPrefix(w.Reason.Plain(), begun) {
		// It was drained for something else before. Its jobs have their time from now on.
		action.Drain = reason
		return
	}
	if !w.Reason.At.IsZero() {
		overtime(w, action)
	}
}

// overtime deletes the pod when its jobs have had their time.
func overtime(w Worker, action *Action) {
	deadline := w.Reason.At.Add(w.DrainTimeout)
	if w.Now.Before(deadline) {
		action.Again = deadline
		action.Message = fmt.Sprintf("waiting for jobs to end until %s", deadline.UTC().Format(time.RFC3339))
		return
	}
	action.Delete = true
	action.Message = fmt.Sprintf("retired (%s), and spec.drainTimeout of %s is over", w.Pod.Retired, w.DrainTimeout)
}
