// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan

import (
	"time"

	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// Action is what to do about one worker next. Each of its parts answers its own questions, see Rules.
type Action struct {
	StateChange StateChange
	Deletion    Deletion
	Marks       Marks
	Shown       Shown
	Questions   Questions
	// Rules are those that have decided.
	Rules []rule.Fired
	// Announce reports whether the pod has to show first that jobs are about to be let onto the node.
	Announce bool
	// Record is what to change of the node's record besides its state.
	Record RecordUpdate
	// Again is when the action may change by time alone; zero when it does not.
	Again time.Time
}

// StateChange is what to change of the state of the Slurm node. At most one of its fields is set.
type StateChange struct {
	// Drain is the reason to drain the node with; empty for no drain.
	Drain string
	// Undrain reports whether a drain of ours is to be ended, Revive whether a node that we had set DOWN may be used.
	Undrain bool
	Revive  bool
	// EndDrain is why to end a drain of slurmctld or of a check that the comment of the node notes; empty to leave it.
	EndDrain string
}

// Opens reports whether jobs may start on the node once the change is made.
func (c StateChange) Opens() bool { return c.Undrain || c.Revive || c.EndDrain != "" }

// Deletion is whether the pod is deleted now.
type Deletion struct {
	// Delete reports whether the pod is to be deleted now. Cause is the reason of the event; empty for the usual one.
	Delete bool
	Cause  string
	// NeverStarted reports whether nothing can ever have run in the pod, so that Slurm need not be asked.
	NeverStarted bool
}

// Marks are the labels and annotations of ours that the pod is to carry.
type Marks struct {
	// Protected is whether the pod carries the protect label. Unknown leaves it as it is.
	Protected node.Answer
	// NodeMark is whether the pod carries our mark that its Kubernetes node is cordoned. Unknown leaves it as it is.
	NodeMark node.Answer
	// Topology is the pod's annotation with its place; nil leaves it as it is.
	Topology *string
	// Deadline is when the last of the node's jobs must end, zero when there are none; with DeadlineKnown false, the pod's deadline stays.
	Deadline      time.Time
	DeadlineKnown bool
}

// Shown is what the pod shows of the worker.
type Shown struct {
	// Message is why, or what is waited for, and Why the reason of the rule that decided so.
	Message, Why string
	// WaitsForJobs reports whether a retired worker waits for its jobs to end. Other waits are short.
	WaitsForJobs bool
	// Conditions are the types of the SlurmNodeState conditions that hold; nil, with ConditionsKnown false, leaves them.
	Conditions      []string
	ConditionsKnown bool
	// OutOfService is who keeps new jobs from the node; with ConditionsKnown false, what the pod shows about it stays.
	OutOfService OutOfService
	// Troubles are what a person has to look at.
	Troubles []Trouble
	// Brief is set when the worker may be gone, or lose its protection, in a moment, so that the pod shows nothing of it until then.
	Brief bool
}

// Questions are what to ask Slurm for.
type Questions struct {
	// Relist reports whether Slurm is to list all its nodes anew: the last list is too old to show that this one is absent.
	Relist bool
	// WantJobs reports whether it must be known which jobs run on the node, and when they end.
	WantJobs bool
}

// wake asks for another look at a time; zero asks for none.
func (a *Action) wake(at time.Time) { a.Again = workerpod.Sooner(a.Again, at) }
