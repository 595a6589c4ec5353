// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

const (
	// minRebooterReady is how long a rebooter has to be ready before a reboot is asked of it. One without rights ends at once.
	minRebooterReady = 10 * time.Second
	// takeUpTimeout is how long a rebooter may take to show that it has seen a request.
	takeUpTimeout = 10 * time.Minute
	// maxAtOnceDivisor limits how many nodes may be degraded at once: one of so many, and at least one. The same holds for those that are not
	// ready, and for those that checks suspect.
	maxAtOnceDivisor = 10
)

// degradations take a Kubernetes node from a process that cannot be ended to the reboot of its machine, and back:
// docs/contributors/predecessors/soperator-health.md#reboot-of-a-machine.
//
//nolint:gochecknoglobals // a constant list
var degradations = rule.List[*Node, Step]{
	Question: "What is written into the conditions SoperatorChecksNodeDegraded and SlurmNodeReboot of a Kubernetes node with workers?",
	Rules: []rule.Rule[*Node, Step]{
		{
			Name: "nobody has asked for reboots", Does: "nothing", Why: "--reboot-degraded-nodes is not set, and the right to write is not there",
			When: func(n *Node) bool { return !n.Reboots },
		},
		{
			Name: "the node is being deleted, or one of the two is Unknown", Does: "nothing", Why: "the machine goes, or who asks cannot tell",
			When: func(n *Node) bool { return n.Leaving || n.Degraded.unknown() || n.Reboot.unknown() },
		},
		{
			Name: "a reboot was asked for, and the rebooter says NodeRebooted", Does: "both False, NodeRebooted", Why: "the cause is gone with the boot; the drains end",
			When: func(n *Node) bool {
				return n.asked() && n.Reboot.is(corev1.ConditionTrue) && n.Reboot.Reason == ReasonNodeRebooted
			},
			Then: func(n *Node) Step {
				return both(corev1.ConditionFalse, ReasonNodeRebooted, n.Reboot.Message, "NodeRebooted", "its machine has been rebooted, and its workers take jobs again")
			},
		},
		{
			Name: "a reboot was asked for, and SlurmNodeReboot is not True any more", Does: "Degraded False, NodeNoRebootNeeded", Why: "somebody has taken the request back",
			When: func(n *Node) bool { return n.asked() && !n.Reboot.is(corev1.ConditionTrue) },
			Then: rule.Is[*Node](Step{Degraded: &Condition{Status: corev1.ConditionFalse, Reason: ReasonNodeNoRebootNeeded, Message: "somebody has taken the reboot back"}}),
		},
		{
			Name: "it is degraded, the machine does not go down, and no rebooter is on the node, or it has not taken up the request within ten minutes",
			Does: "both False, NoRebooter", Why: "jobs would wait for ever; the worker with the process stays drained",
			When: func(n *Node) bool { return n.Degraded.is(corev1.ConditionTrue) && (n.abandoned() || n.ignored()) },
			Then: (*Node).withdraw,
		},
		{
			Name: "a reboot was asked for", Does: "nothing", Why: "the rebooter is at work",
			When: (*Node).asked, Then: (*Node).waitForRebooter,
		},
		{
			Name: "it is degraded, and all its workers are drained and have no jobs", Does: "Degraded True and SlurmNodeReboot True, NodeNeedReboot", Why: "no job is lost by the reboot. A worker that is gone may have left its process there, and so may one that a person has resumed",
			When: func(n *Node) bool { return n.Degraded.is(corev1.ConditionTrue) && n.drained() },
			Then: func(*Node) Step {
				return both(corev1.ConditionTrue, ReasonNodeNeedReboot, "all workers are drained and have no jobs", "NodeNeedReboot", "its machine is to be rebooted: all workers are drained and have no jobs")
			},
		},
		{
			Name: "it is degraded", Does: "nothing", Why: "jobs end, or it is not known whether they have",
			When: func(n *Node) bool { return n.Degraded.is(corev1.ConditionTrue) },
		},
		{
			Name: "no worker has been drained because of Kill task failed since its pod was made, and since the last reboot", Does: "nothing", Why: "what is older was about another machine, or ended with the reboot",
			When: func(n *Node) bool { return n.cause() == nil },
		},
		{
			Name: "the machine is to be replaced", Does: "nothing", Why: "a new machine has no such process",
			When: func(n *Node) bool { return n.Maintenance.Announced() },
		},
		{
			Name: "no rebooter has been ready there for ten seconds", Does: "nothing", Why: "nobody would reboot the machine, and jobs would wait for ever",
			When: func(n *Node) bool { return !n.Rebooter.readyFor(minRebooterReady, n.Now) },
			Then: func(n *Node) Step { return Step{Again: n.Rebooter.readyAt(minRebooterReady)} },
		},
		{
			Name: "a tenth of the nodes with workers is degraded already, and at least one is", Does: "nothing, and say so", Why: "a file system that hangs looks like this on all nodes, and no reboot helps there",
			When: func(n *Node) bool { return !n.Others.mayBegin(n.Others.Degraded) },
			Then: func(n *Node) Step {
				return Step{Event: Event{Warning: true, Reason: "TooManyDegraded", Message: fmt.Sprintf("%d of %d nodes with workers are degraded already; this one waits until there are fewer", n.Others.Degraded, n.Others.All+1)}}
			},
		},
		{
			Name: "otherwise", Does: "Degraded True, SlurmNodeDegraded", Why: "the workers drain for it, so that their jobs end before the reboot",
			Then: func(n *Node) Step {
				message := fmt.Sprintf("Slurm node %s: %s", n.cause().Slurm, node.KillTaskFailed)
				return Step{
					Degraded: &Condition{Status: corev1.ConditionTrue, Reason: ReasonSlurmNodeDegraded, Message: message},
					Event:    Event{Warning: true, Reason: ReasonSlurmNodeDegraded, Message: message + "; its workers drain, and then its machine is rebooted"},
				}
			},
		},
	},
}

// both sets both conditions, and returns the event for it.
func both(status corev1.ConditionStatus, reason, message, event, told string) Step {
	c := Condition{Status: status, Reason: reason, Message: message}
	return Step{Degraded: &c, Reboot: &c, Event: Event{Reason: event, Message: told}}
}

// asked reports whether we have asked for a reboot and have not seen its end.
func (n *Node) asked() bool {
	return n.Degraded.is(corev1.ConditionTrue) && n.Degraded.Reason == ReasonNodeNeedReboot
}

// goesDown reports whether the rebooter has the machine reboot.
func (n *Node) goesDown() bool {
	return n.Reboot.is(corev1.ConditionTrue) && n.Reboot.Reason == ReasonNodeRebooting
}

// abandoned reports whether no rebooter is there that could do anything.
func (n *Node) abandoned() bool { return !n.Rebooter.Exists && !n.goesDown() }

// ignored reports whether a rebooter has not answered a request of ours.
func (n *Node) ignored() bool {
	return n.asked() && n.Reboot.Reason == ReasonNodeNeedReboot && !n.Now.Before(n.Reboot.Since.Add(takeUpTimeout))
}

// withdraw takes the request back.
func (n *Node) withdraw() Step {
	const message = "no rebooter acts on the node: it needs a NodeConfigurator, and its ServiceAccount needs rights"
	if n.asked() {
		return both(corev1.ConditionFalse, ReasonNoRebooter, message, ReasonNoRebooter, message)
	}
	return Step{Degraded: &Condition{Status: corev1.ConditionFalse, Reason: ReasonNoRebooter, Message: message}, Event: Event{Warning: true, Reason: ReasonNoRebooter, Message: message}}
}

// waitForRebooter waits for an event, or until the rebooter is late.
func (n *Node) waitForRebooter() Step {
	if n.Reboot.Reason == ReasonNodeNeedReboot {
		return Step{Again: n.Reboot.Since.Add(takeUpTimeout)}
	}
	return Step{}
}

// cause returns a worker for which the machine is to be rebooted; nil for none.
func (n *Node) cause() *Worker {
	for i := range n.Workers {
		if w := &n.Workers[i]; !w.Foreign && w.State.Drain() == node.Yes && (w.Reason.OfKillTask() || w.Reason.AfterKillTask()) && n.counts(w) {
			return w
		}
	}
	return nil
}

// counts reports whether Slurm's state of a worker is about this machine since its last boot. A pod that was evicted takes the drain of its
// Slurm node along to another machine.
func (n *Node) counts(w *Worker) bool {
	noRebooter := n.Degraded.is(corev1.ConditionFalse) && n.Degraded.Reason == ReasonNoRebooter
	if w.Reason.AfterKillTask() { // set by us while this machine, or the one that the pod was on, was degraded
		return n.Degraded.is(corev1.ConditionTrue) || noRebooter && n.Degraded.Since.Add(clockTolerance).After(w.Reason.At)
	}
	if !w.Reason.At.After(w.Created) {
		return false
	}
	return noRebooter || !n.Degraded.is(corev1.ConditionFalse) || w.Reason.At.After(n.Degraded.Since)
}

// drained reports whether no worker has jobs or will get any, and no drain is Slurm's for which the machine is rebooted: it would
// go with the pod to another machine.
func (n *Node) drained() bool {
	for i := range n.Workers {
		switch w := &n.Workers[i]; {
		case !w.Foreign && w.Reason.OfKillTask() && n.counts(w), w.Protected, w.Known == node.Unknown, w.Known == node.Yes && w.State.Drained().And(w.Jobless) != node.Yes:
			return false
		}
	}
	return true
}
