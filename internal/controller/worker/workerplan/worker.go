// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workerplan decides what to do about one worker now: whether its Slurm node is drained and its pod protected from evictions. It also
// decides what Slurm's record of it is to have, and whether the pod may be deleted. Next is a pure function of what was gathered.
package workerplan

import (
	"time"

	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// Worker is one worker pod and what Slurm reports of its node.
type Worker struct {
	Now time.Time
	// Pod is the pod; only its name, marks and phase and whether it is scheduled, ready or going matter.
	Pod workerpod.Pod
	// Slurm is the name of its Slurm node.
	Slurm string
	// TerminationDeadline is when a pod that is being deleted should have ended; zero for others.
	TerminationDeadline time.Time
	// Host is the Kubernetes node that the pod runs on.
	Host Host
	// Storage is what is known about the pod's ephemeral storage.
	Storage health.Storage
	// Checks are the checks that have to pass on its machine and have not, with their states; empty for none.
	Checks workerpod.Checks
	// NodeMarked reports whether the pod carries our mark that its Kubernetes node is cordoned.
	NodeMarked bool
	// Topology is the place of the Slurm node that the pod shows: the last annotation of its Kubernetes node.
	Topology string
	SlurmView
	Wanted
	Writes
}

// SlurmView is what Slurm reports of a worker's node.
type SlurmView struct {
	// SnapshotTime is when Slurm was asked for what follows.
	SnapshotTime time.Time
	// NodeListTime is when Slurm was asked for its last list of nodes: a node that is not in it was absent then.
	NodeListTime time.Time
	// Registered answers whether Slurm has the node: Unknown unless Slurm has just answered. Why is why that is not known, for people.
	Registered node.Answer
	Why        string
	// Absent is since when Slurm, whenever it was asked, did not have the node; zero when it has, or it is not known.
	Absent time.Time
	// RegisteredAs is the Slurm node that slurmd has registered as, if that is not the expected one.
	RegisteredAs string
	// NeverAnswered reports whether Slurm is asked and has not answered yet, and nothing on the pod shows that it ever has.
	NeverAnswered bool
	// SlurmStateLost answers whether Slurm has lost its state, so that an absent node proves nothing: by the very list in which the node is
	// absent, and by what the NodeSet remembers. Without a No, no pod is deleted that has started.
	SlurmStateLost node.Answer
	// State and Reason are the node's by Slurm's present answer; State is the zero State without one.
	State  node.State
	Reason node.Reason
	// Completing is since when the node is COMPLETING, if it is, as far as the pod shows.
	Completing time.Time
	// Record is what else Slurm has on the node.
	Record Record
	// Held answers whether somebody else held the node before slurmctld drained it for a registration: see HeldSince.
	Held node.Answer
	// Jobs are the jobs on the node, those that end last at the end, if JobsKnown is Yes.
	Jobs      []Job
	JobsKnown node.Answer
}

// Wanted is what a worker's NodeSet wants of it.
type Wanted struct {
	// Comment is what the comment of the node is to have about the pod, with what the pod registers with.
	Comment node.Comment
	// DrainTimeout is how long a retired worker may keep its jobs after the drain has begun; zero means for ever.
	DrainTimeout time.Duration
	// Protection is when the NodeSet wants the worker kept from being evicted.
	Protection workerpod.Protection
}

// Writes are what operators have written to Slurm about a worker and its snapshot may not show yet.
type Writes struct {
	// Recording reports whether an update of the record is on its way. Recorded is when the last one arrived, and LastAttempt what it was.
	Recording   bool
	Recorded    time.Time
	LastAttempt Attempt
	// Opening is the pod's announcement of who was the last to let jobs onto the node.
	Opening workerpod.Opening
	// Announced is when this process announced that it lets jobs onto the node, and has not done so since; zero when it must announce it
	// first.
	Announced time.Time
	// OpeningUntil is until when a write may arrive that lets jobs onto the node, according to announcements.
	OpeningUntil time.Time
}

// Job is a job on the node of a worker.
type Job struct {
	ID   int64
	User string
	// End is when Slurm ends it at the latest; zero for never.
	End time.Time
	// Completing reports whether it has ended, and its processes or its epilog have not.
	Completing bool
}

// situation is what is known about a worker. Most questions are asked in some situations only.
type situation int8

const (
	// beingDeleted: whoever deleted the pod, nothing is left to decide.
	beingDeleted situation = iota
	// neverStarted: no Slurm can know a pod that has never had a place to run.
	neverStarted
	// notAnswered: Slurm has not just answered whether it has the node.
	notAnswered
	// registeredElsewhere: Slurm has the worker by another name than the expected one.
	registeredElsewhere
	// unregistered: by its present answer, Slurm does not have the node.
	unregistered
	// retired: Slurm has the node, and the worker is to go.
	retired
	// staying: Slurm has the node, and the worker is to stay.
	staying
)

// facts are what the rules decide from: the worker, and what was decided about it before.
type facts struct {
	Worker
	rule.Trail
	situation situation
	absence   absence
	change    StateChange
}

// registered reports whether Slurm has the node.
func (f *facts) registered() bool { return f.situation >= retired }

//nolint:gochecknoglobals // a constant list
var situations = rule.List[*facts, situation]{
	Question: "What is known of the worker?",
	Rules: []rule.Rule[*facts, situation]{
		{
			Name: "the pod is being deleted", Does: "nothing is decided about it", Why: "whoever deleted it, Kubernetes ends it now",
			When: func(f *facts) bool { return f.Pod.Terminating }, Then: rule.Is[*facts](beingDeleted),
		},
		{
			Name: "a retired pod has never had a Kubernetes node", Does: "it never started", Why: "no Slurm can know a pod that has never had a place to run",
			When: func(f *facts) bool { return f.Pod.Retired != "" && !f.Pod.Scheduled && f.Pod.Phase == "Pending" }, Then: rule.Is[*facts](neverStarted),
		},
		{
			Name: "Slurm did not say whether it has the node", Does: "it is not known", Why: "nothing is deleted or changed on an answer that is not known to be true now",
			When: func(f *facts) bool { return f.Registered == node.Unknown }, Then: rule.Is[*facts](notAnswered),
		},
		{
			Name: "Slurm has the slurmd under another node name", Does: "it is registered elsewhere", Why: "its jobs are not known by the name that is looked for",
			When: func(f *facts) bool { return f.Registered == node.No && f.RegisteredAs != "" }, Then: rule.Is[*facts](registeredElsewhere),
		},
		{
			Name: "Slurm does not have the node", Does: "it is unregistered", Why: "it starts, or its record was deleted, or Slurm has lost its state",
			When: func(f *facts) bool { return f.Registered == node.No }, Then: rule.Is[*facts](unregistered),
		},
		{
			Name: "the pod is retired", Does: "it is to go", Why: "the NodeSet has marked it",
			When: func(f *facts) bool { return f.Pod.Retired != "" }, Then: rule.Is[*facts](retired),
		},
		{Name: "otherwise", Does: "it is to stay", Why: "that is what workers are for", Then: rule.Is[*facts](staying)},
	},
}

// Next decides about one worker. It never deletes on an unknown answer, and never touches a drain that is not ours.
func Next(w Worker) Action {
	f := &facts{Worker: w}
	f.situation = situations.Decide(f)
	var action Action
	if f.situation == unregistered {
		f.absence = absences.Decide(f)
		action.Questions.Relist = f.absence.relist
		action.wake(f.absence.again)
	}
	f.change = changeOf(f)
	action.StateChange = f.change
	action.Announce = f.registered() && (f.change.Opens() || f.returns()) && !f.announced()
	end := endOf(f)
	action.Deletion, action.Shown.Message, action.Shown.WaitsForJobs = end.Deletion, end.message, end.waitsForJobs
	action.Shown.Why = f.LastWhy()
	action.wake(end.again)
	shown := conditionsShown.Decide(f)
	action.Shown.Conditions, action.Shown.ConditionsKnown = shown.conditions, shown.known
	action.wake(shown.again)
	if shown.known && f.registered() {
		action.Shown.OutOfService = outOfService.Decide(f)
	}
	action.Shown.Brief = f.waitIsBrief()
	if action.Shown.Brief {
		action.wake(f.waitShown())
	}
	protected := protections.Decide(f)
	action.Marks.Protected = protected.answer
	action.wake(protected.again)
	marks(f, &action)
	troubles.Each(f, func(t Trouble) { action.Shown.Troubles = append(action.Shown.Troubles, t) })
	if f.registered() && !action.Deletion.Delete {
		record(f, &action)
	}
	action.Rules = f.Fired()
	return action
}

// marks sets what the pod shows of its Kubernetes node, and when its jobs end.
func marks(f *facts, action *Action) {
	if f.situation == beingDeleted {
		return
	}
	action.Marks.NodeMark = f.Host.Cordoned
	if f.Host.HasTopology {
		action.Marks.Topology = &f.Host.Topology
	}
	if f.registered() {
		action.Questions.WantJobs = jobInterest.Decide(f)
		d := deadlines.Decide(f)
		action.Marks.Deadline, action.Marks.DeadlineKnown = d.at, d.known
	}
}
