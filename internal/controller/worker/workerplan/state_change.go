// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan

import (
	"cmp"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// Our reasons for drains. The texts name no pod: the comment of the node does, and Slurm takes one reason for any number of nodes, so that
// one call drains a thousand of them.
const (
	retiredReason     = "Pod was cordoned pending termination"
	podCordonedReason = "Pod was cordoned"
	nodeCordonReason  = "Node was cordoned"
)

// pendingTermination is in every reason of a retirement, also in those of slurm-operator, which name the pod.
const pendingTermination = "cordoned pending termination"

// changeOf returns what to change of the state of a node that Slurm has.
func changeOf(f *facts) StateChange {
	switch f.situation {
	case retired:
		return retiredStates.Decide(f)
	case staying:
		return stayingStates.Decide(f)
	default:
		return StateChange{}
	}
}

//nolint:gochecknoglobals // a constant list
var retiredStates = rule.List[*facts, StateChange]{
	Question: "How does the state of a retired worker's node change?",
	Rules: []rule.Rule[*facts, StateChange]{
		{
			Name: "it is not known whether the node drains", Does: "nothing", Why: "somebody else's drain could be overwritten",
			When: func(f *facts) bool { return f.State.Drain() == node.Unknown },
		},
		{
			Name: "the node does not drain", Does: "drain",
			Why:  "no job may start there any more; a node that is DOWN may be heard of again at any moment, so it is drained as well",
			When: func(f *facts) bool { return f.State.Drain() == node.No },
			Then: func(f *facts) StateChange { return StateChange{Drain: f.retiring()} },
		},
		{
			Name: "nothing is on the node", Does: "nothing", Why: "the pod may go",
			When: func(f *facts) bool { return f.Free() == node.Yes },
		},
		{
			Name: "the drain is somebody else's", Does: "nothing", Why: "a drain that is not ours is never touched",
			When: func(f *facts) bool { return node.HeldBy(f.State, f.Reason) != node.Operator },
		},
		{
			Name: "it was drained for something else, and it is not known whether jobs are there", Does: "nothing",
			Why:  "it may go in a moment, and needs no other reason for that",
			When: func(f *facts) bool { return !f.drainedToGo() && f.Occupied() == node.Unknown },
		},
		{
			Name: "it was drained for something else", Does: "drain again, for the retirement", Why: "its jobs have the time of spec.drainTimeout from now on",
			When: func(f *facts) bool { return !f.drainedToGo() },
			Then: rule.Is[*facts](StateChange{Drain: node.OurReason(retiredReason)}),
		},
		{Name: "otherwise", Does: "nothing", Why: "it drains already, and its jobs run on"},
	},
}

// stayingStates keeps Slurm's drain in line with the cordon and the maintenance of the Kubernetes node, with the mark on the pod, with
// its ephemeral storage and with the checks that it needs. What somebody else has said about the Slurm node stays:
// docs/contributors/predecessors/slinky-workers.md#cordons, and soperator-health.md there.
//
//nolint:gochecknoglobals // a constant list
var stayingStates = rule.List[*facts, StateChange]{
	Question: "How does the state of the node of a worker that stays change?",
	Rules: []rule.Rule[*facts, StateChange]{
		{
			Name: "checks have to pass on its machine first, and it does not drain", Does: "drain",
			Why:  "no job may start there before; a node that is DOWN is used the moment its slurmd registers, so it is drained as well",
			When: func(f *facts) bool { return len(f.Checks) > 0 && f.State.Drain() == node.No },
			Then: func(f *facts) StateChange { return StateChange{Drain: f.wantedDrain()} },
		},
		{
			Name: "we had set it DOWN, and another slurmd has registered since", Does: "let it be used again",
			Why:  "Slurm does so itself, unless slurm.conf has another ReturnToService than ours",
			When: (*facts).mayRevive, Then: rule.Is[*facts](StateChange{Revive: true}),
		},
		{
			Name: "the pod still has our mark of a cordon that is over", Does: "nothing", Why: "the mark goes first; what is left of the cordon is then a user's, or nothing",
			When: func(f *facts) bool { return f.NodeMarked && f.Host.Cordoned == node.No },
		},
		{
			Name: "its machine is to be rebooted because Slurm has drained it with Kill task failed", Does: "drain again, with our reason and that",
			Why:  "the pod may run on another machine afterwards, and then the drain is over; one that is Slurm's could not be told from one of that machine",
			When: (*facts).takesOver, Then: rule.Is[*facts](StateChange{Drain: node.RebootAfterKillTask()}),
		},
		{
			Name: "its machine is to be replaced because a check has drained it with [hardware_problem]", Does: "drain again, with our reason and that of the check",
			Why: "the drain ends on another machine, where that of the check could not be told from one of that machine",
			When: func(f *facts) bool {
				return f.Host.Maintenance.Suspected && f.State.Drain() == node.Yes && f.Reason.OfHardware()
			},
			Then: func(f *facts) StateChange { return StateChange{Drain: node.ReplacementAfterCheck(f.Reason.Text)} },
		},
		{
			Name: "the node is DOWN, or may be", Does: "nothing", Why: "it takes no jobs, and its reason may be an administrator's, or one that Slurm lifts when the node comes back",
			When: func(f *facts) bool { return f.State.Down() != node.No },
		},
		{
			Name: "it is wanted drained and is not", Does: "drain",
			Why:  "its machine is to be replaced, or who cordons a Kubernetes node or a pod wants no new jobs there, or its ephemeral storage is nearly used up",
			When: func(f *facts) bool { return f.wantedDrain() != "" && f.State.Drain() == node.No },
			Then: func(f *facts) StateChange { return StateChange{Drain: f.wantedDrain()} },
		},
		{
			Name: "it is wanted drained, and our drain is for something that is over", Does: "drain again, for what is wanted now",
			Why: "the reason in Slurm tells what is waited for; another retirement has a time of its own",
			When: func(f *facts) bool {
				return f.wantedDrain() != "" && f.State.Drain() == node.Yes && f.drainedForOther(node.Reason{Text: f.wantedDrain()})
			},
			Then: func(f *facts) StateChange { return StateChange{Drain: f.wantedDrain()} },
		},
		{
			Name: "nobody wants our drain any more", Does: "undrain", Why: "the worker is ready, neither it nor its Kubernetes node is cordoned, neither maintenance nor a reboot is announced, enough of its ephemeral storage is free, and the checks that it needs have passed",
			When: func(f *facts) bool {
				return f.wantedDrain() == "" && f.State.Drain() == node.Yes && node.HeldBy(f.State, f.Reason) == node.Operator && f.mayUndrain()
			},
			Then: rule.Is[*facts](StateChange{Undrain: true}),
		},
		{
			Name: "slurmctld or a check has drained it for something that is over, and nobody else wants it drained", Does: "undrain", Why: "nobody else ends such a drain",
			When: func(f *facts) bool { return f.wantedDrain() == "" && f.mayUndrain() && endedDrains.Decide(f) != "" },
			Then: func(f *facts) StateChange { return StateChange{EndDrain: endedDrains.Decide(f)} },
		},
		{Name: "otherwise", Does: "nothing", Why: "it is as it should be, or somebody else has a say in it"},
	},
}

// retiring returns the reason to drain the node of a retired worker with. If somebody else has set the node DOWN, the reason keeps theirs.
func (w *Worker) retiring() string {
	if w.State.Down() == node.Yes && !w.Reason.Ours() && w.Reason.Text != "" {
		return node.OurReason(retiredReason + " (before: " + w.Reason.Text + ")")
	}
	return node.OurReason(retiredReason)
}

// drainedToGo reports whether we have drained the node because the worker was to go.
func (w *Worker) drainedToGo() bool {
	return node.HeldBy(w.State, w.Reason) == node.Operator && strings.Contains(w.Reason.Plain(), pendingTermination)
}

// wantedDrain returns the reason to drain the node of a worker that stays; empty for none. The first of several causes gives it, and the
// node comes back when the last is gone.
func (w *Worker) wantedDrain() string {
	switch {
	case w.Host.Reboot.Wanted:
		return node.RebootReason
	case w.Host.Maintenance.Announced():
		return w.Host.Maintenance.DrainReason()
	case w.drainedForStorage():
		return w.Reason.Text // with the percentage that it was drained for
	case w.Host.Cordoned == node.Yes:
		return node.OurReason(cmp.Or(node.SanitizeReason(w.Host.CordonReason), nodeCordonReason))
	case w.Pod.Cordoned:
		return node.OurReason(podCordonedReason)
	}
	return cmp.Or(w.Storage.DrainReason(), w.Checks.DrainReason())
}

// drainedForStorage reports whether the node is drained because of the pod's ephemeral storage, and not enough of it is known to be free
// again.
func (w *Worker) drainedForStorage() bool {
	return w.State.Drain() == node.Yes && w.Reason.OfStorage() && w.Storage.Full != node.No
}

// drainedForOther reports whether we have drained the node for another reason than the wanted one: its going, a maintenance, or the
// ephemeral storage of its pod. Other words for a cordon are no other reason.
func (w *Worker) drainedForOther(wanted node.Reason) bool {
	switch {
	case node.HeldBy(w.State, w.Reason) != node.Operator, w.Reason.AfterKillTask():
		return false
	case wanted.OfReboot() || w.Reason.OfReboot():
		return wanted.OfReboot() != w.Reason.OfReboot()
	case wanted.OfMaintenance() || w.Reason.OfMaintenance():
		return wanted.OfMaintenance() != w.Reason.OfMaintenance()
	case wanted.OfStorage() || w.Reason.OfStorage():
		return wanted.OfStorage() != w.Reason.OfStorage()
	}
	return w.drainedToGo() && !strings.Contains(wanted.Plain(), pendingTermination)
}

// mayUndrain reports whether the worker can take jobs, and nothing unknown may speak against it.
func (w *Worker) mayUndrain() bool {
	return w.Pod.Ready && w.hostKnownWell() && w.State.NotResponding() == node.No && !w.awaitsReboot()
}

// takesOver reports whether Slurm has drained the node for Kill task failed, and the machine of this pod is to be rebooted because of that.
func (f *facts) takesOver() bool {
	return f.Host.Reboot.Wanted && f.State.Drain() == node.Yes && f.Reason.OfKillTask() && f.Reason.At.After(f.Pod.Created)
}

// awaitsReboot reports whether the drain replaced Slurm's for Kill task failed, and the machine with the process has not been rebooted
// since, as far as is known.
func (w *Worker) awaitsReboot() bool {
	return w.Reason.AfterKillTask() && !w.Host.Reboot.Over(w.Reason)
}

// hostKnownWell reports whether the Kubernetes node is known, and nobody wants its workers drained.
func (w *Worker) hostKnownWell() bool {
	return w.Host.Cordoned == node.No && !w.Host.Maintenance.Unknown && !w.Host.Maintenance.Announced() &&
		!w.Host.Reboot.Wanted && !w.Host.Reboot.Unknown
}

// mayRevive reports whether we have set the node DOWN, another slurmd stands behind it, and nobody wants it drained: Slurm ends the drain
// of such a node, too.
func (f *facts) mayRevive() bool {
	if f.State.Drain() != node.No && (f.wantedDrain() != "" || !f.hostKnownWell()) {
		return false
	}
	return f.State.Down() == node.Yes && f.State.NotResponding() == node.No && f.Reason.Ours() && f.Pod.Ready &&
		!f.Reason.At.IsZero() && f.Record.Started.After(f.Reason.At)
}

// returns reports whether a worker is about to be used again, once our mark of the cordon is off: the same write protects it.
func (w *Worker) returns() bool {
	return w.Pod.Retired == "" && len(w.Checks) == 0 && w.NodeMarked && w.State.Drain() == node.Yes && w.State.Down() == node.No && w.Reason.Ours() && w.mayUndrain()
}
