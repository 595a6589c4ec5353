// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// suspicions say of a machine that its hardware is suspected to be broken, because a check has drained a worker for that:
// docs/contributors/predecessors/soperator-health.md#suspected-hardware.
//
//nolint:gochecknoglobals // a constant list
var suspicions = rule.List[*Node, Step]{
	Question: "What is written into condition HardwareIssuesSuspected of a Kubernetes node with workers?",
	Rules: []rule.Rule[*Node, Step]{
		{
			Name: "nobody has asked for replacements, or the node is being deleted or has a label that is ignored", Does: "nothing", Why: "the condition has the machine replaced",
			When: func(n *Node) bool { return !n.Replaces || n.Leaving || n.Ignored },
		},
		{
			Name: "the condition is True or Unknown", Does: "nothing", Why: "it is said already, or whoever says it cannot tell",
			When: func(n *Node) bool { return n.Suspected.is(corev1.ConditionTrue) || n.Suspected.unknown() },
		},
		{
			Name: "no check has drained a worker with [hardware_problem] later than two minutes after its pod was made, and since the condition became False", Does: "nothing", Why: "what is older was about another machine, by clocks that may differ, or somebody has looked at it since",
			When: func(n *Node) bool { return n.suspect() == nil },
		},
		{
			Name: "a job is on that worker, or may be", Does: "nothing", Why: "the other workers drain when the condition is True, which has time until then",
			When: func(n *Node) bool { return !n.suspect().free() },
		},
		{
			Name: "checks suspect a tenth of the nodes with workers already, and at least one", Does: "nothing, and say so", Why: "a check that is wrong fails on all of them",
			When: func(n *Node) bool { return !n.Others.mayBegin(n.Others.Suspected) },
			Then: func(n *Node) Step {
				return Step{Event: Event{Warning: true, Reason: "TooManySuspected", Message: fmt.Sprintf("%d of %d nodes with workers are suspected to be broken already; this one waits until there are fewer", n.Others.Suspected, n.Others.All+1)}}
			},
		},
		{
			Name: "otherwise", Does: "True, GPUHealthCheckFailedSoperator", Why: "the other workers drain, and the machine is replaced",
			Then: func(n *Node) Step {
				w := n.suspect()
				message := fmt.Sprintf("Slurm node %s: %s", w.Slurm, w.Reason.Text)
				return Step{
					Suspected: &Condition{Status: corev1.ConditionTrue, Reason: ReasonCheckFailed, Message: message},
					Event:     Event{Warning: true, Reason: HardwareIssuesSuspected, Message: message + "; its workers drain, and then its machine is replaced"},
				}
			},
		},
	},
}

// suspects reports whether a check has drained the worker because of the hardware of its machine, which may be replaced for it.
func (w Worker) suspects() bool {
	return !w.Foreign && w.State.Drain() == node.Yes && w.Reason.OfHardware()
}

// suspect returns a worker for which the hardware of the machine is suspected; nil for none.
func (n *Node) suspect() *Worker {
	if !n.Replaces || n.Suspected.is(corev1.ConditionTrue) {
		return nil
	}
	for i := range n.Workers {
		w := &n.Workers[i]
		if w.suspects() && w.Reason.At.After(w.Created.Add(clockTolerance)) && w.Reason.At.After(n.Suspected.Since) {
			return w
		}
	}
	return nil
}
