// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// DeletedWithNodeSet is the cause for which the workers of a deleted NodeSet go.
const DeletedWithNodeSet workerpod.Cause = "deletion"

// end is whether the pod is deleted, what it waits for otherwise, and when to look again.
type end struct {
	Deletion
	message string
	// waitsForJobs reports whether it waits for jobs to end.
	waitsForJobs bool
	again        time.Time
}

// endOf decides about the end of a worker, and returns a message about one that stays.
func endOf(f *facts) end {
	switch f.situation {
	case retired:
		return retiredEnds.Decide(f)
	case staying:
		return end{message: stayingMessages.Decide(f)}
	default:
		return unregisteredEnds.Decide(f)
	}
}

//nolint:gochecknoglobals // a constant list
var unregisteredEnds = rule.List[*facts, end]{
	Question: "What becomes of a pod whose node Slurm does not have, or does not tell of?",
	Rules: []rule.Rule[*facts, end]{
		{
			Name: "the pod is being deleted", Does: "wait until it is gone", Why: "after its grace period and a minute, a person has to look at it",
			When: func(f *facts) bool { return f.situation == beingDeleted },
			Then: func(f *facts) end { return end{message: "the pod is being deleted", again: f.lateIfNotYet()} },
		},
		{
			Name: "it never started", Does: "delete the pod", Why: "nothing can ever have run in it, so Slurm need not be asked",
			When: func(f *facts) bool { return f.situation == neverStarted },
			Then: func(f *facts) end {
				return end{Deletion: Deletion{Delete: true, NeverStarted: true}, message: fmt.Sprintf("retired (%s) and never started", f.Pod.Retired)}
			},
		},
		{
			Name: "Slurm does not answer", Does: "keep the pod", Why: "a job may run there",
			When: func(f *facts) bool { return f.situation == notAnswered },
			Then: func(f *facts) end { return end{message: "the state of the node in Slurm is not known: " + f.Why} },
		},
		{
			Name: "it is registered under another name", Does: "keep the pod", Why: "its jobs are not known by the name that is looked for; a person drains and deletes it",
			When: func(f *facts) bool { return f.situation == registeredElsewhere },
			Then: func(f *facts) end {
				return end{message: "slurmd has registered as node " + f.RegisteredAs + " rather than " + f.Slurm}
			},
		},
		{
			Name: "it is to stay", Does: "keep the pod", Why: "it may be about to register; the NodeSet decides whether it is made anew",
			When: func(f *facts) bool { return f.Pod.Retired == "" },
			Then: rule.Is[*facts](end{message: "the node is not registered"}),
		},
		{
			Name: "it runs, and is retired because Slurm does not have it", Does: "delete the pod", Why: "a slurmd registers when it starts, and nobody can make it do so again",
			When: func(f *facts) bool { return f.goes() && f.Pod.Retired == workerpod.Unregistered },
			Then: rule.Is[*facts](end{
				Deletion: Deletion{Delete: true, Cause: slinkyv1beta1.ReasonSlurmNodeNotRegistered},
				message:  "slurmd runs, but Slurm has no record of its node; slurmd registers only when it starts",
			}),
		},
		{
			Name: "it starts, or is gone from Slurm for good", Does: "delete the pod", Why: "Slurm deletes no record of a busy node, so no job is there",
			When: (*facts).goes,
			Then: func(f *facts) end {
				return end{Deletion: Deletion{Delete: true}, message: fmt.Sprintf("retired (%s) and not registered in Slurm", f.Pod.Retired)}
			},
		},
		{
			Name: "Slurm has lost its state, and there is no spec.drainTimeout", Does: "keep the pod until a person deletes it", Why: "jobs may run of which Slurm knows nothing any more",
			When: func(f *facts) bool { return f.SlurmStateLost == node.Yes && f.DrainTimeout == 0 },
			Then: rule.Is[*facts](end{message: "not registered in Slurm, which seems to have lost its state; delete the pod when you know that nothing runs there"}),
		},
		{
			Name: "it has been absent for less than a minute", Does: "keep the pod", Why: "it may register, and a job may start at once; a list may also lack a node by mistake",
			When: func(f *facts) bool { return !f.Settled() },
			Then: rule.Is[*facts](end{message: "waiting to see whether the node registers"}),
		},
		{
			Name: "otherwise", Does: "keep the pod", Why: "Slurm may have lost its state, and with it the jobs that run there",
			Then: rule.Is[*facts](end{message: "waiting to find out whether Slurm has lost its state: most workers that it had are missing"}),
		},
	},
}

//nolint:gochecknoglobals // a constant list
var retiredEnds = rule.List[*facts, end]{
	Question: "When is the pod of a retired worker deleted?",
	Rules: []rule.Rule[*facts, end]{
		{
			Name: "it is not known whether the node drains", Does: "wait", Why: "a job may start there",
			When: func(f *facts) bool { return f.State.Drain() == node.Unknown },
			Then: rule.Is[*facts](end{message: "waiting for Slurm to report whether the node drains"}),
		},
		{
			Name: "the node does not drain yet", Does: "wait", Why: "a job may start there",
			When: func(f *facts) bool { return f.State.Drain() == node.No },
			Then: rule.Is[*facts](end{message: "draining"}),
		},
		{
			Name: "nothing is on the node, but a write may arrive that lets jobs onto it", Does: "wait until that is over", Why: "an undrain that is under way would let a job start on a pod that is going",
			When: func(f *facts) bool { return f.Free() == node.Yes && f.mayOpen() },
			Then: func(f *facts) end {
				return end{message: "waiting until no request is in flight that could let jobs start on the node", again: f.OpeningUntil}
			},
		},
		{
			Name: "nothing is on the node, and nothing will start there", Does: "delete the pod", Why: "no job is lost",
			When: func(f *facts) bool { return f.Free() == node.Yes },
			Then: func(f *facts) end {
				return end{Deletion: Deletion{Delete: true}, message: fmt.Sprintf("retired (%s) and drained", f.Pod.Retired)}
			},
		},
		{
			Name: "spec.drainTimeout is over", Does: "delete the pod, and with it its jobs", Why: "the jobs have had their time since the node was drained for this retirement",
			When: func(f *facts) bool { return f.hasDrainDeadline() && !f.Now.Before(f.drainDeadline()) },
			Then: func(f *facts) end {
				return end{Deletion: Deletion{Delete: true}, message: fmt.Sprintf("retired (%s), and spec.drainTimeout of %s is over", f.Pod.Retired, f.DrainTimeout)}
			},
		},
		{
			Name: "spec.drainTimeout runs", Does: "wait for the jobs, at most until it is over", Why: "that is how long jobs may keep the worker",
			When: (*facts).hasDrainDeadline,
			Then: func(f *facts) end {
				return end{
					message:      waiting(f) + "; spec.drainTimeout ends them at " + f.drainDeadline().UTC().Format(time.RFC3339),
					waitsForJobs: f.hasJobs(), again: f.drainDeadline(),
				}
			},
		},
		{
			Name: "otherwise", Does: "wait for the jobs", Why: "without spec.drainTimeout, or after somebody else's drain, jobs may run as long as they like",
			Then: func(f *facts) end { return end{message: waiting(f), waitsForJobs: f.hasJobs()} },
		},
	},
}

//nolint:gochecknoglobals // a constant list
var stayingMessages = rule.List[*facts, string]{
	Question: "What is said of a worker that stays?",
	Rules: []rule.Rule[*facts, string]{
		{
			Name: "the machine of its Kubernetes node is to be rebooted", Does: "say so", Why: "that is why its Slurm node drains",
			When: func(f *facts) bool { return f.Host.Reboot.Wanted },
			Then: func(f *facts) string { return "Kubernetes node " + f.Host.Name + " is to be rebooted" },
		},
		{
			Name: "the machine of its Kubernetes node is to be replaced", Does: "say so", Why: "that is why its Slurm node drains",
			When: func(f *facts) bool { return f.Host.Maintenance.Announced() },
			Then: func(f *facts) string {
				return fmt.Sprintf("Kubernetes node %s has condition %s: %s", f.Host.Name, f.Host.Maintenance.Type, f.Host.Maintenance.Message)
			},
		},
		{
			Name: "its ephemeral storage is nearly used up", Does: "say so", Why: "that is why its Slurm node drains",
			When: func(f *facts) bool {
				return f.drainedForStorage() || f.change.Drain != "" && f.change.Drain == f.Storage.DrainReason()
			},
			Then: rule.Is[*facts]("the ephemeral storage of the pod is nearly used up"),
		},
		{
			Name: "its Kubernetes node is cordoned", Does: "say so", Why: "that is why its Slurm node drains",
			When: func(f *facts) bool { return f.Host.Cordoned == node.Yes },
			Then: func(f *facts) string { return "Kubernetes node " + f.Host.Name + " is cordoned" },
		},
		{
			Name: "its pod is cordoned", Does: "say so", Why: "that is why its Slurm node drains",
			When: func(f *facts) bool { return f.Pod.Cordoned }, Then: rule.Is[*facts]("the pod is cordoned"),
		},
		{
			Name: "checks have to pass on its machine first", Does: "say so", Why: "that is why its Slurm node drains",
			When: func(f *facts) bool { return len(f.Checks) > 0 },
			Then: func(f *facts) string { return "waits for checks " + strings.Join(f.Checks.Names(), ", ") },
		},
		{
			Name: "it is undrained", Does: "say why", Why: "the drain was ours, and nobody wants it any more",
			When: func(f *facts) bool { return f.change.Undrain }, Then: rule.Is[*facts]("nobody wants the node drained any more"),
		},
		{
			Name: "the drain of slurmctld or of a check ends", Does: "say why", Why: "it was not ours",
			When: func(f *facts) bool { return f.change.EndDrain != "" }, Then: func(f *facts) string { return f.change.EndDrain },
		},
		{Name: "otherwise", Does: "nothing", Why: "there is nothing to say"},
	},
}

// hasDrainDeadline reports whether spec.drainTimeout bounds how long jobs keep the worker: we have drained the node because the worker is
// to go.
func (f *facts) hasDrainDeadline() bool {
	return f.drainedToGo() && f.DrainTimeout > 0 && !f.Reason.At.IsZero()
}

// drainDeadline returns when the time for jobs is over: from when the node was drained, but not for an earlier retirement. Slurm does not
// change the time of a reason when it is set again.
func (f *facts) drainDeadline() time.Time {
	return workerpod.Later(f.Reason.At, f.Pod.RetiredAt).Add(f.DrainTimeout)
}

// hasJobs reports whether jobs are on the node, or may be: more is missing than an answer about jobs that are suspended.
func (f *facts) hasJobs() bool { return f.State.Busy() != node.No || f.Occupied() == node.Yes }

// completing returns which jobs on the node have ended while their processes or epilogs have not, where and since when. ok is false for
// anything else.
func (f *facts) completing() (text string, ok bool) {
	known := f.JobsKnown == node.Yes && len(f.Jobs) > 0
	running := func(j Job) bool { return !j.Completing }
	if !f.State.Has(node.Completing) || known && slices.ContainsFunc(f.Jobs, running) || !known && (f.State.Has(node.Allocated) || f.State.Has(node.Mixed)) {
		return "", false
	}
	which := "jobs"
	if known {
		which = fmt.Sprintf("job %d", f.Jobs[0].ID)
		if len(f.Jobs) > 1 {
			which = fmt.Sprintf("%d jobs, such as job %d", len(f.Jobs), f.Jobs[0].ID)
		}
		if user := f.Jobs[0].User; user != "" {
			which += " of " + user
		}
	}
	return fmt.Sprintf("%s, COMPLETING on node %s since %s: a process or the epilog has not ended", which, f.Slurm, f.Completing.UTC().Format(time.RFC3339)), true
}

// waiting returns what a retired worker waits for.
func waiting(w *facts) string {
	if !w.hasJobs() {
		return "waiting for Slurm to report whether suspended jobs are on the node"
	}
	if since, ok := w.completing(); ok {
		return "waiting for " + since
	}
	if w.JobsKnown != node.Yes || len(w.Jobs) == 0 {
		return "waiting for jobs to end"
	}
	last := w.Jobs[len(w.Jobs)-1]
	text := fmt.Sprintf("waiting for job %d", last.ID)
	if len(w.Jobs) > 1 {
		text = fmt.Sprintf("waiting for %d jobs, the last of which is job %d", len(w.Jobs), last.ID)
	}
	if last.User != "" {
		text += " of " + last.User
	}
	if w.State.Busy() == node.No {
		return text + ", which is suspended"
	}
	if last.End.IsZero() {
		return text + ", which has no time limit"
	}
	return text + ", which ends no later than " + last.End.UTC().Format(time.RFC3339)
}
