// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
)

// absences take a Kubernetes node that Kubernetes has not heard of for too long to the deletion of its Node:
// docs/contributors/predecessors/soperator-health.md#kubernetes-nodes-that-are-not-ready.
//
//nolint:gochecknoglobals // a constant list
var absences = rule.List[*Node, Step]{
	Question: "What is written into condition SlurmNodeNotReady of a Kubernetes node with workers, and when is its Node deleted?",
	Rules: []rule.Rule[*Node, Step]{
		{
			Name: "nobody has asked for that", Does: "nothing", Why: "--delete-not-ready-nodes is not set, and the right to delete Nodes is not there",
			When: func(n *Node) bool { return n.NotReadyTimeout == 0 },
		},
		{
			Name: "the node is being deleted, has a label that is ignored, or does not say whether it is ready", Does: "nothing", Why: "nothing is known of it, or it is somebody else's",
			When: func(n *Node) bool { return n.Leaving || n.Ignored || n.Ready.Status == "" || n.NotReady.unknown() },
		},
		{
			Name: "it is ready again", Does: "SlurmNodeNotReady False, NodeReady", Why: "its workers take jobs again",
			When: func(n *Node) bool {
				return n.Ready.is(corev1.ConditionTrue) && n.NotReady.is(corev1.ConditionTrue)
			},
			Then: rule.Is[*Node](Step{
				NotReady: &Condition{Status: corev1.ConditionFalse, Reason: ReasonNodeReady, Message: "the Kubernetes node is ready again"},
				Event:    Event{Reason: ReasonNodeReady, Message: "it is ready again, and its workers take jobs"},
			}),
		},
		{
			Name: "it is ready, or has no workers and had none when it was marked", Does: "nothing", Why: "most nodes are in service, and those without workers are not ours",
			When: func(n *Node) bool {
				return n.Ready.is(corev1.ConditionTrue) || !n.NotReady.is(corev1.ConditionTrue) && !n.asks()
			},
		},
		{
			Name: "it has not been not ready for so long", Does: "nothing", Why: "a kubelet that is restarted, or a machine that reboots, comes back",
			When: func(n *Node) bool { return !n.late() },
			Then: func(n *Node) Step { return Step{Again: n.Ready.Since.Add(n.NotReadyTimeout)} },
		},
		{
			Name: "more than half of the nodes with workers are not ready, and it is not the only one", Does: "nothing, and say so", Why: "what is broken then is the network, or the control plane of Kubernetes, and jobs may run on all of them",
			When: func(n *Node) bool { return n.Others.Unready > 0 && 2*(n.Others.Unready+1) > n.Others.All+1 },
			Then: (*Node).tooManyNotReady,
		},
		{
			Name: "it is not marked, and a tenth of the nodes with workers is, and at least one", Does: "nothing, and say so", Why: "machines are replaced one after the other",
			When: func(n *Node) bool {
				return !n.NotReady.is(corev1.ConditionTrue) && !n.Others.mayBegin(n.Others.NotReady)
			},
			Then: (*Node).tooManyNotReady,
		},
		{
			Name: "it is not marked", Does: "SlurmNodeNotReady True, NodeNotReady", Why: "its workers drain where they still answer, as for a maintenance",
			When: func(n *Node) bool { return !n.NotReady.is(corev1.ConditionTrue) },
			Then: func(n *Node) Step {
				message := fmt.Sprintf("the Kubernetes node has not been ready since %s: %s", n.Ready.Since.UTC().Format(time.RFC3339), n.Ready.Reason)
				return Step{
					NotReady: &Condition{Status: corev1.ConditionTrue, Reason: ReasonNodeNotReady, Message: message},
					Event:    Event{Warning: true, Reason: ReasonNodeNotReady, Message: message + "; the Node is deleted when no job runs there"},
				}
			},
		},
		{
			Name: "a job is on one of its workers, or may be, or may start there", Does: "nothing", Why: "a machine whose kubelet has died may run jobs for days",
			When: func(n *Node) bool { return !n.free() },
		},
		{
			Name: "otherwise", Does: "delete the Node, after a last look at Slurm", Why: "the cloud replaces the machine. Nobody is left there who could evict pods",
			Then: rule.Is[*Node](Step{Delete: true, Event: Event{Warning: true, Reason: "NodeReplaced", Message: "the Node is deleted, so that its machine is replaced: it was not ready, and no job was there"}}),
		},
	},
}

// late reports whether the node has not been ready for longer than it may.
func (n *Node) late() bool {
	return n.NotReadyTimeout > 0 && n.Ready.Status != "" && !n.Ready.is(corev1.ConditionTrue) && !n.Now.Before(n.Ready.Since.Add(n.NotReadyTimeout))
}

func (n *Node) tooManyNotReady() Step {
	return Step{Event: Event{Warning: true, Reason: "TooManyNotReady", Message: fmt.Sprintf(
		"%d of %d nodes with workers are not ready, and %d are being replaced for that already; this one waits",
		n.Others.Unready+1, n.Others.All+1, n.Others.NotReady)}}
}
