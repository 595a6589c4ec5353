// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// Conditions of Kubernetes nodes, as the contract has them (soperator.md §6.0).
const (
	// NodeDegraded is True while the machine of a Kubernetes node is to be rebooted because of what Slurm says of its workers.
	NodeDegraded = "SoperatorChecksNodeDegraded"
	// NodeReboot is the condition by which the rebooter is asked for a reboot, and by which it tells how far it is.
	NodeReboot = "SlurmNodeReboot"
)

// Reasons of those conditions.
const (
	// ReasonSlurmNodeDegraded goes with NodeDegraded True: the workers drain.
	ReasonSlurmNodeDegraded = "SlurmNodeDegraded"
	// ReasonNodeNeedReboot goes with True of both: the workers are drained, and the rebooter is asked for a reboot.
	ReasonNodeNeedReboot = "NodeNeedReboot"
	// ReasonNodeRebooting and ReasonNodeRebooted go with NodeReboot True: what the rebooter says.
	ReasonNodeRebooting = "NodeRebooting"
	// ReasonNodeRebooted goes also with False of both: the machine has been rebooted.
	ReasonNodeRebooted = "NodeRebooted"
	// ReasonNodeNoRebootNeeded goes with NodeDegraded False: somebody has taken the reboot back.
	ReasonNodeNoRebootNeeded = "NodeNoRebootNeeded"
	// ReasonNoRebooter goes with False of both: nobody reboots the machine.
	ReasonNoRebooter = "NoRebooter"
)

// Node is what is known of one Kubernetes node that carries workers.
type Node struct {
	// Now is the time of the pass.
	Now time.Time
	// Leaving says that the Node object is being deleted.
	Leaving bool
	// Degraded and Reboot are its conditions of these types.
	Degraded, Reboot Condition
	// Maintenance is what its conditions say about its replacement.
	Maintenance Maintenance
	// Rebooter is the rebooter on the node.
	Rebooter Rebooter
	// Workers are the workers there.
	Workers []Worker
	// Nodes is how many Kubernetes nodes carry workers, and OthersDegraded how many of the others are degraded.
	Nodes, OthersDegraded int
}

// Condition is a condition of a Kubernetes node. Status is empty when the node does not have it.
type Condition struct {
	Status          corev1.ConditionStatus
	Reason, Message string
	// Since is when its status changed last.
	Since time.Time
}

// Rebooter is the rebooter of a Kubernetes node. The zero value is none.
type Rebooter struct {
	// Exists says that its pod is there.
	Exists bool
	// Ready is since when it is ready; zero when it is not.
	Ready time.Time
}

// Worker is a worker on a Kubernetes node.
type Worker struct {
	// Slurm is the name of its Slurm node.
	Slurm string
	// Created is when its pod was made.
	Created time.Time
	// Protected says that the pod is protected from evictions: a job is there, or may be, or may start there.
	Protected bool
	// Known says whether Slurm has the node: Unknown whenever Slurm did not say so just now. State and Reason are the node's.
	Known  node.Answer
	State  node.State
	Reason node.Reason
}

// Step is what to do about a Kubernetes node next. The zero value is nothing.
type Step struct {
	// Degraded and Reboot are the conditions as they are to be; nil leaves one as it is.
	Degraded, Reboot *Condition
	// Event is what to tell; empty for nothing.
	Event Event
	// Again is when to look again although nothing changes; zero is never.
	Again time.Time
}

// Event is what is told of a Kubernetes node.
type Event struct {
	Warning         bool
	Reason, Message string
}

// Writes says that conditions are to be written.
func (s Step) Writes() bool { return s.Degraded != nil || s.Reboot != nil }

// WaitsForOthers says that Nodes and OthersDegraded matter.
func (n *Node) WaitsForOthers() bool { return !n.Degraded.is(corev1.ConditionTrue) && n.cause() != nil }

// Decide says what to do about a Kubernetes node next.
func Decide(n Node) Step { return degradations.Decide(&n) }

// ConditionOf is a condition of a Kubernetes node.
func ConditionOf(n *corev1.Node, kind corev1.NodeConditionType) Condition {
	for _, c := range n.Status.Conditions {
		if c.Type == kind {
			return Condition{Status: c.Status, Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time}
		}
	}
	return Condition{}
}

// Written are the conditions of a Kubernetes node that a step is written with: those of our types that it has or is to have. A condition
// that were left out would be taken off the node, because server-side apply takes away what its field manager does not send any more.
func (s Step) Written(n *corev1.Node, now time.Time) []corev1.NodeCondition {
	at := metav1.NewTime(now.Truncate(time.Second))
	var out []corev1.NodeCondition
	for _, wanted := range []struct {
		kind corev1.NodeConditionType
		to   *Condition
	}{{NodeDegraded, s.Degraded}, {NodeReboot, s.Reboot}} {
		i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == wanted.kind })
		switch {
		case wanted.to == nil && i < 0:
		case wanted.to == nil:
			out = append(out, n.Status.Conditions[i])
		default:
			c := corev1.NodeCondition{
				Type: wanted.kind, Status: wanted.to.Status, Reason: wanted.to.Reason, Message: wanted.to.Message, LastHeartbeatTime: at, LastTransitionTime: at,
			}
			if i >= 0 && n.Status.Conditions[i].Status == c.Status {
				c.LastTransitionTime = n.Status.Conditions[i].LastTransitionTime
			}
			// A request that is made anew, of a rebooter that has said NodeRebooted, begins now.
			if i >= 0 && n.Status.Conditions[i].Reason != c.Reason && wanted.kind == NodeReboot {
				c.LastTransitionTime = at
			}
			out = append(out, c)
		}
	}
	return out
}

func (c Condition) is(status corev1.ConditionStatus) bool { return c.Status == status }

func (c Condition) unknown() bool {
	return c.Status != "" && c.Status != corev1.ConditionTrue && c.Status != corev1.ConditionFalse
}

// maxClockAhead is how far the clock of a kubelet may be ahead of ours for what it says about a time to be waited for.
const maxClockAhead = time.Minute

// readyFor says that the rebooter has been ready for so long, or that this cannot be told because of the clock of its kubelet. Then the
// time within which it has to take up a request bounds the mistake.
func (r Rebooter) readyFor(d time.Duration, now time.Time) bool {
	return r.Exists && !r.Ready.IsZero() && (!now.Before(r.Ready.Add(d)) || r.Ready.Sub(now) > maxClockAhead)
}

// readyAt is when the rebooter will have been ready for so long; zero when it is not ready.
func (r Rebooter) readyAt(d time.Duration) time.Time {
	if !r.Exists || r.Ready.IsZero() {
		return time.Time{}
	}
	return r.Ready.Add(d)
}
