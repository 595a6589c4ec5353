// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// replacements take a Kubernetes node from an announced maintenance to the deletion of its Node, for which a cloud makes another machine:
// docs/contributors/predecessors/soperator-health.md#announced-maintenance and
// docs/contributors/predecessors/soperator-health.md#replacement-of-a-machine.
//
//nolint:gochecknoglobals // a constant list
var replacements = rule.List[*Node, Step]{
	Question: "What is written into the conditions SoperatorChecksNodeMaintenance and SlurmNodeDrain of a Kubernetes node with workers, and when is its Node deleted?",
	Rules: []rule.Rule[*Node, Step]{
		{
			Name: "nobody has asked for replacements", Does: "nothing", Why: "--enable-node-replacement is not set, and the right to delete Nodes is not there",
			When: func(n *Node) bool { return !n.Replaces },
		},
		{
			Name: "the node is being deleted, or it is Unknown whether a maintenance is announced, or what was asked of the rebooter", Does: "nothing", Why: "a Node that is deleted by mistake ends all that runs there",
			When: func(n *Node) bool {
				return n.Leaving || n.Maintenance.Unknown || n.Maintained.unknown() || n.Drain.unknown()
			},
		},
		{
			Name: "no maintenance is announced any more", Does: "SoperatorChecksNodeMaintenance False, NodeUndrained, and SlurmNodeDrain as well if it was asked for here",
			Why:  "the machine stays. A drain that somebody else has asked for goes on",
			When: func(n *Node) bool { return !n.announced() && n.Maintained.is(corev1.ConditionTrue) },
			Then: (*Node).endMaintenance,
		},
		{
			Name: "no maintenance is announced", Does: "nothing", Why: "most nodes are in service. One that is not ready is for other rules: no rebooter works there",
			When: func(n *Node) bool { return !n.announced() },
		},
		{
			Name: "the machine is to be rebooted, or goes down for that", Does: "nothing", Why: "who has asked for the reboot waits for it",
			When: func(n *Node) bool { return n.Degraded.is(corev1.ConditionTrue) || n.rebootAsked() },
		},
		{
			Name: "the node has no workers, and had none when the maintenance began", Does: "nothing", Why: "the node is not ours",
			When: func(n *Node) bool { return !n.Maintained.is(corev1.ConditionTrue) && !n.asks() },
		},
		{
			Name: "a job is on one of its workers, or may be, or may start there", Does: "nothing", Why: "the workers drain, and their jobs run to their end",
			When: func(n *Node) bool { return !n.free() },
		},
		{
			Name: "the drain of a worker is still a check's, for which the machine is replaced", Does: "nothing", Why: "the pod would take it along to another machine, and have that replaced as well",
			When: func(n *Node) bool {
				return n.Maintenance.Suspected && slices.ContainsFunc(n.Workers, (Worker).suspects)
			},
		},
		{
			Name: "that was not so before", Does: "SoperatorChecksNodeMaintenance True, NodeDraining", Why: "clouds and people see that the machine may go",
			When: func(n *Node) bool { return !n.Maintained.is(corev1.ConditionTrue) },
			Then: func(n *Node) Step {
				return Step{
					Maintained: &Condition{Status: corev1.ConditionTrue, Reason: ReasonNodeDraining, Message: "all workers are drained and have no jobs: " + n.Maintenance.Type},
					Event:      Event{Reason: "NodeMaintenance", Message: "all workers are drained and have no jobs; the Node is deleted when the rebooter has drained it: " + n.Maintenance.Type},
				}
			},
		},
		{
			Name: "the rebooter says that the Kubernetes node is drained", Does: "delete the Node, after a last look at Slurm", Why: "the cloud replaces the machine",
			When: func(n *Node) bool { return n.Drain.is(corev1.ConditionTrue) && n.Drain.Reason == ReasonNodeDrained },
			Then: func(n *Node) Step {
				return Step{Delete: true, Event: Event{Reason: "NodeReplaced", Message: "the Node is deleted, so that its machine is replaced: " + n.Maintenance.Type}}
			},
		},
		{
			Name: "no rebooter has been ready there for ten seconds", Does: "nothing, and say so", Why: "pods of others would end without an eviction",
			When: func(n *Node) bool { return !n.Rebooter.readyFor(minRebooterReady, n.Now) },
			Then: (*Node).lackRebooter,
		},
		{
			Name: "a drain is asked for", Does: "nothing", Why: "the rebooter is at work",
			When: func(n *Node) bool { return n.Drain.is(corev1.ConditionTrue) },
		},
		{
			Name: "otherwise", Does: "True, NodeNeedDrain, of both", Why: "an eviction asks the budgets of pods that are not workers",
			Then: func(*Node) Step {
				c := Condition{Status: corev1.ConditionTrue, Reason: ReasonNodeNeedDrain, Message: "the machine is to be replaced"}
				return Step{Maintained: &c, Drain: &c}
			},
		},
	},
}

// announced reports whether something other than condition Ready announces a replacement.
func (n *Node) announced() bool {
	return n.Maintenance.Announced() && n.Maintenance.Type != NodeNotReady
}

func (n *Node) endMaintenance() Step {
	c := Condition{Status: corev1.ConditionFalse, Reason: ReasonNodeUndrained, Message: "no condition announces maintenance any more"}
	step := Step{Maintained: &c, Event: Event{Reason: "NodeMaintenanceOver", Message: c.Message + "; its workers take jobs again"}}
	if n.Maintained.Reason == ReasonNodeNeedDrain && n.Drain.is(corev1.ConditionTrue) {
		step.Drain = &c
	}
	return step
}

func (n *Node) lackRebooter() Step {
	return Step{Again: n.Rebooter.readyAt(minRebooterReady), Event: Event{
		Warning: true, Reason: ReasonNoRebooter,
		Message: "all workers are drained and have no jobs, but no rebooter is ready to drain the Kubernetes node. Make a NodeConfigurator for it, or drain and delete the Node by hand",
	}}
}

// rebootAsked reports whether the rebooter has been asked for a reboot, by anybody, and has not reported its end.
func (n *Node) rebootAsked() bool {
	return n.Reboot.unknown() || n.Reboot.is(corev1.ConditionTrue) && n.Reboot.Reason != ReasonNodeRebooted
}

// asks reports whether the node has a worker for which its machine may be replaced.
func (n *Node) asks() bool {
	return slices.ContainsFunc(n.Workers, func(w Worker) bool { return !w.Foreign })
}

// free reports whether no job is on any worker of the node, and none will start there.
func (n *Node) free() bool {
	return !slices.ContainsFunc(n.Workers, func(w Worker) bool { return !w.free() })
}

// free reports whether no job is on the worker, and none will start there. The protection of a pod also covers jobs that may start there.
// It does not change any more once the pod is being deleted.
func (w *Worker) free() bool {
	switch {
	case w.Protected && !w.Leaving, w.Known == node.Unknown:
		return false
	case w.Known == node.No:
		return true
	}
	return w.ends().And(w.Jobless) == node.Yes
}

// ends returns Yes if no job starts on the worker, since it drains or Slurm has given it up, and its state shows none.
func (w *Worker) ends() node.Answer {
	return w.State.Drain().Or(w.State.Down()).And(w.State.Busy().Not())
}
