// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
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
	// Host is the Kubernetes node that the pod runs on.
	Host Host
	// NodeMarked says that the pod carries our mark that its Kubernetes node is cordoned.
	NodeMarked bool
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
	// NodeMark is whether the pod carries our mark that its Kubernetes node is cordoned. Unknown leaves it as it is.
	NodeMark node.Answer
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
	action := Action{NodeMark: w.Host.Cordoned}
	switch w.Known {
	case node.Unknown:
		action.Message, action.Again = "Slurm's view of the node is not known: "+w.Why, w.Again
	case node.No:
		missing(w, &action)
	case node.Yes:
		known(w, &action)
	}
	return action
}

// known decides about a worker whose node Slurm has.
func known(w Worker, action *Action) {
	action.Conditions, action.ConditionsKnown, action.Protected = w.State.Conditions(), true, node.No
	if w.Protect {
		action.Protected = w.State.Busy()
	}
	if w.Pod.Retired != "" {
		retire(w, action)
	} else {
		cordon(w, action)
	}
}
