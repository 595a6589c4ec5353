// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package worker decides what to do about one worker now: whether its Slurm node is drained, whether its pod is protected from
// evictions, what Slurm's record of it is to say, and whether the pod may be deleted. Next is a pure function of what was gathered.
package worker

import (
	"fmt"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// Worker is one worker pod and what Slurm says of its node.
type Worker struct {
	Now time.Time
	// Pod is the pod; of it only the name, the marks, the phase and whether it is scheduled, ready or going count.
	Pod nodeset.Pod
	// Slurm is the name of its Slurm node.
	Slurm string
	// Gone is when a pod that is being deleted should have ended; zero for others.
	Gone time.Time
	// Host is the Kubernetes node that the pod runs on.
	Host Host
	// NodeMarked says that the pod carries our mark that its Kubernetes node is cordoned.
	NodeMarked bool
	// Asked is when Slurm was asked for what follows.
	Asked time.Time
	// Listed is when it was asked for its last list of nodes: what is not in it was not there then.
	Listed time.Time
	// Known says whether Slurm has the node: Unknown whenever Slurm did not say so just now.
	Known node.Answer
	// Absent is since when Slurm, whenever it was asked, did not have the node; zero when it has, or it is not known.
	Absent time.Time
	// Elsewhere is the Slurm node that slurmd has registered as, where that is not Slurm.
	Elsewhere string
	// Unheard says that Slurm is asked and has not answered yet, and that nothing on the pod shows that it ever has.
	Unheard bool
	// State and Reason are the node's, as Slurm said just now; State is the zero State otherwise.
	State  node.State
	Reason node.Reason
	// Record is what else Slurm has on the node, and Comment what it is to say about the pod, with what the pod registers with.
	Record  Record
	Comment node.Comment
	// Placed is where the pod says that the Slurm node is: what the annotation of its Kubernetes node said last.
	Placed string
	// Recording says that an update of the record is on its way, Recorded when the last one arrived, and Tried what it was.
	Recording bool
	Recorded  time.Time
	Tried     Attempt
	// Jobs are the jobs on the node, those that end last at the end, if JobsKnown is Yes.
	Jobs      []Job
	JobsKnown node.Answer
	// Why says why Slurm's view is not known, for people.
	Why string
	// DrainTimeout is how long a retired worker may keep its jobs after the drain has begun; zero means for ever.
	DrainTimeout time.Duration
	// Protection is how far the NodeSet wants it kept from being evicted.
	Protection Protection
	// Opening is what the pod says about who was the last to let jobs onto the node.
	Opening Opening
	// Announced is when this process said that it lets jobs onto the node, and has not done so since; zero when it must say so first.
	Announced time.Time
	// OpeningUntil is until when a write may arrive that lets jobs onto the node, as far as announcements tell.
	OpeningUntil time.Time
	// Lost answers whether Slurm has lost its state, so that an absent node proves nothing: by the very list in which the node
	// is absent, and by what the NodeSet remembers. Without a No nothing is deleted that has started.
	Lost node.Answer
}

// Action is what to do about one worker next.
type Action struct {
	// Drain is the reason to drain the node with; empty for no drain.
	Drain string
	// Undrain says that a drain of ours is to be ended, Revive that a node which we had set DOWN may be used.
	Undrain bool
	Revive  bool
	// Announce says that the pod is to say so first.
	Announce bool
	// Record is what to change of the node's record besides.
	Record RecordUpdate
	// Delete says that the pod is to be deleted now. Cause is the reason of the event; empty for the usual one.
	Delete bool
	Cause  string
	// NeverStarted says that nothing can ever have run in the pod, so that Slurm need not be asked.
	NeverStarted bool
	// Message says why, or what is waited for.
	Message string
	// Protected is whether the pod carries the protect label. Unknown leaves it as it is.
	Protected node.Answer
	// NodeMark is whether the pod carries our mark that its Kubernetes node is cordoned. Unknown leaves it as it is.
	NodeMark node.Answer
	// Topology is what the pod's annotation says about its place, nil leaves it as it is.
	Topology *string
	// Relist says that Slurm is to list all its nodes anew, because the last list is too old to tell that this one is absent.
	Relist bool
	// WantJobs says that it must be known which jobs run on the node, and when they end.
	WantJobs bool
	// Deadline is when the last of the node's jobs must end, zero when there are none; with DeadlineKnown false, what the
	// pod says about it stays.
	Deadline      time.Time
	DeadlineKnown bool
	// Conditions are the types of the SlurmNodeState conditions that hold; nil, with ConditionsKnown false, leaves them.
	Conditions      []string
	ConditionsKnown bool
	// Troubles are what a person has to look at.
	Troubles []Trouble
	// Brief says that the worker may be gone in a moment, so that nothing is shown of it.
	Brief bool
	// Again is when the action may change by the mere passing of time; zero when it does not.
	Again time.Time
}

// Opens says that jobs may start on the node once the action is carried out.
func (a Action) Opens() bool { return a.Undrain || a.Revive }

// Next decides about one worker. It never deletes on an unknown answer, and never touches a drain that is not ours.
func Next(w Worker) Action {
	if w.Pod.Terminating {
		return terminating(w)
	}
	action := Action{NodeMark: w.Host.Cordoned}
	if w.Host.HasTopology {
		action.Topology = &w.Host.Topology
	}
	if w.Protection == Unprotected {
		action.Protected = node.No
	}
	kubernetesNodeTrouble(w, &action)
	switch {
	case w.Pod.Retired != "" && !w.Pod.Scheduled && w.Pod.Phase == "Pending":
		// No Slurm can know a pod that has never had a place to run.
		action.Delete, action.NeverStarted = true, true
		action.Message = fmt.Sprintf("retired (%s) and never started", w.Pod.Retired)
	case w.Known == node.Unknown:
		if w.Unheard && w.Protection == UntilDrained {
			action.Protected = node.Yes
		}
		action.Message = "Slurm's view of the node is not known: " + w.Why
	case w.Known == node.No:
		missing(w, &action)
	default:
		known(w, &action)
	}
	return action
}

// known decides about a worker whose node Slurm has.
func known(w Worker, action *Action) {
	if until := w.succeeds(); until.IsZero() {
		action.Conditions, action.ConditionsKnown = w.State.Conditions(), true
	} else {
		action.wake(until)
	}
	deadline(w, action)
	if w.Pod.Retired != "" {
		retire(w, action)
	} else {
		revive(w, action)
		cordon(w, action)
	}
	announce(w, action)
	protect(w, action)
	recordMismatch(w, action)
	if !action.Delete {
		record(w, action)
	}
}

// succeeds says until when nothing is shown of what Slurm has on the node, because it is the state that the pod before has left,
// or because Slurm heard of this pod's slurmd before we heard that the pod runs. Either is over in seconds and would be one
// more write for each worker. Zero says that it is the state of this pod, or that it has lasted too long.
func (w Worker) succeeds() (until time.Time) {
	until = w.Pod.Created.Add(registrationTimeout)
	left := w.State.Down() == node.Yes && !w.Record.Started.IsZero() && w.Record.Started.Before(w.Pod.Created)
	if !w.Now.Before(until) || !left && w.Pod.Phase != "Pending" {
		return time.Time{}
	}
	return until
}

// revive lets a node be used that was set DOWN when another pod stood behind it. Slurm does so itself, unless slurm.conf
// has another ReturnToService than ours.
func revive(w Worker, action *Action) {
	// Slurm ends the drain of the node, too.
	if w.State.Drain() != node.No && (w.cordonCause() != "" || w.Host.Cordoned != node.No) {
		return
	}
	if w.State.Down() == node.Yes && w.State.NotResponding() == node.No && w.Reason.Ours() && w.Pod.Ready &&
		!w.Reason.At.IsZero() && w.Record.Started.After(w.Reason.At) {
		action.Revive = true
	}
}
