// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// Conditions of Kubernetes nodes, as Soperator has them: docs/contributors/predecessors/soperator-health.md#conditions-of-kubernetes-nodes.
const (
	// NodeDegraded is True while the machine of a Kubernetes node is to be rebooted because of what Slurm reports about its workers.
	NodeDegraded = "SoperatorChecksNodeDegraded"
	// NodeReboot is the condition by which the rebooter is asked for a reboot, and by which it reports how far it is.
	NodeReboot = "SlurmNodeReboot"
	// NodeMaintenance is True while a machine is to be replaced, and no job is left on the workers of its Kubernetes node.
	NodeMaintenance = "SoperatorChecksNodeMaintenance"
	// NodeDrain is the condition by which the rebooter is asked to drain the Kubernetes node, and by which it reports how far it is.
	NodeDrain = "SlurmNodeDrain"
	// NodeNotReady is True while a machine is to be replaced because its Kubernetes node has not been ready for too long. Soperator does not
	// have it.
	NodeNotReady = "SlurmNodeNotReady"
)

// Reasons of those conditions.
const (
	// ReasonSlurmNodeDegraded goes with NodeDegraded True: the workers drain.
	ReasonSlurmNodeDegraded = "SlurmNodeDegraded"
	// ReasonNodeNeedReboot goes with True of both: the workers are drained, and the rebooter is asked for a reboot.
	ReasonNodeNeedReboot = "NodeNeedReboot"
	// ReasonNodeRebooting and ReasonNodeRebooted go with NodeReboot True: what the rebooter reports.
	ReasonNodeRebooting = "NodeRebooting"
	// ReasonNodeRebooted goes also with False of both: the machine has been rebooted.
	ReasonNodeRebooted = "NodeRebooted"
	// ReasonNodeNoRebootNeeded goes with NodeDegraded False: the request for a reboot has been taken back.
	ReasonNodeNoRebootNeeded = "NodeNoRebootNeeded"
	// ReasonNoRebooter goes with False of both: no rebooter runs that could reboot the machine.
	ReasonNoRebooter = "NoRebooter"
	// ReasonNodeDraining goes with NodeMaintenance True: the workers are drained, and the rebooter has not been asked for anything.
	ReasonNodeDraining = "NodeDraining"
	// ReasonNodeNeedDrain goes with True of NodeMaintenance and NodeDrain: the rebooter is asked to drain the Kubernetes node.
	ReasonNodeNeedDrain = "NodeNeedDrain"
	// ReasonNodeDrained goes with NodeDrain True: the rebooter reports that no pod is left to evict.
	ReasonNodeDrained = "NodeDrained"
	// ReasonNodeUndrained goes with False of both: no maintenance is announced any more.
	ReasonNodeUndrained = "NodeUndrained"
	// ReasonNodeNotReady goes with NodeNotReady True, and ReasonNodeReady with False.
	ReasonNodeNotReady = "NodeNotReady"
	// ReasonNodeReady is the reason when the Kubernetes node is ready again.
	ReasonNodeReady = "NodeReady"
	// ReasonCheckFailed goes with HardwareIssuesSuspected True: a check has drained a worker with [hardware_problem].
	ReasonCheckFailed = "GPUHealthCheckFailedSoperator"
)

// Node is what is known of one Kubernetes node that carries workers.
type Node struct {
	// Now is the time of the pass.
	Now time.Time
	// Reboots and Replaces are whether degraded machines are rebooted, and machines replaced by deletion of their Nodes. NotReadyTimeout is
	// how long a Node may not be ready before it is deleted; 0 is for ever.
	Reboots, Replaces bool
	NotReadyTimeout   time.Duration
	// Leaving is true if the Node object is being deleted, and Ignored if it has a label because of which it is never replaced.
	Leaving, Ignored bool
	// Degraded, Reboot, Maintained, Drain and NotReady are its conditions of the types that are written, and Suspected is
	// HardwareIssuesSuspected.
	Degraded, Reboot, Maintained, Drain, NotReady, Suspected Condition
	// Ready is condition Ready of the Kubernetes node.
	Ready Condition
	// Maintenance is what its conditions announce about its replacement.
	Maintenance Maintenance
	// Rebooter is the rebooter on the node.
	Rebooter Rebooter
	// Workers are the workers there.
	Workers []Worker
	// Others are the other Kubernetes nodes with workers. They are only known where WaitsForOthers.
	Others Others
}

// Others counts the Kubernetes nodes with workers that are not the one in question.
type Others struct {
	// All is how many there are, and Unready how many of them Kubernetes calls not ready.
	All, Unready int
	// Degraded, NotReady and Suspected are how many of them have these conditions True.
	Degraded, NotReady, Suspected int
}

// Add counts one more Kubernetes node.
func (o *Others) Add(n *corev1.Node) {
	o.All++
	for _, c := range n.Status.Conditions {
		switch {
		case c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue:
			o.Unready++
		case c.Status != corev1.ConditionTrue:
		case c.Type == NodeDegraded:
			o.Degraded++
		case c.Type == NodeNotReady:
			o.NotReady++
		case c.Type == HardwareIssuesSuspected:
			o.Suspected++
		}
	}
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
	// Exists is true if its pod is there.
	Exists bool
	// Ready is since when it is ready; zero when it is not.
	Ready time.Time
}

// Worker is a worker on a Kubernetes node.
type Worker struct {
	// Slurm is the name of its Slurm node, and Cluster that of the Controller.
	Slurm   string
	Cluster types.NamespacedName
	// Created is when its pod was made, and Leaving is true if the pod is being deleted.
	Created time.Time
	Leaving bool
	// Foreign is true if the machine is not rebooted or replaced for this worker: no NodeSet has its pod, or the options of the
	// operator do not let its namespace ask for that. Its jobs count nevertheless.
	Foreign bool
	// Protected is true if the pod is protected from evictions: a job is there, or may be, or may start there.
	Protected bool
	// Known is whether Slurm has the node: Unknown whenever Slurm did not answer just now. State and Reason are the node's.
	Known  node.Answer
	State  node.State
	Reason node.Reason
	// Jobless is whether the node has no job, not even a suspended one, which its state does not show. It is Unknown until Slurm has
	// been asked: WantsJobs.
	Jobless node.Answer
}

// Step is what to do about a Kubernetes node next. The zero value is nothing.
type Step struct {
	// Degraded, Reboot, Maintained, Drain, NotReady and Suspected are the wanted conditions; nil leaves one as it is.
	Degraded, Reboot, Maintained, Drain, NotReady, Suspected *Condition
	// Delete is true if the Node object is to be deleted, after a last look at Slurm.
	Delete bool
	// Event is the event to write; empty for none.
	Event Event
	// Again is when to look again although nothing changes; zero is never.
	Again time.Time
}

// Event is an event about a Kubernetes node.
type Event struct {
	Warning         bool
	Reason, Message string
}

// wanted is a condition of a Kubernetes node as it should be; to is nil for one that stays as it is.
type wanted struct {
	kind corev1.NodeConditionType
	to   *Condition
}

func (s Step) conditions() []wanted {
	return []wanted{
		{NodeDegraded, s.Degraded}, {NodeReboot, s.Reboot}, {NodeMaintenance, s.Maintained}, {NodeDrain, s.Drain}, {NodeNotReady, s.NotReady},
		{HardwareIssuesSuspected, s.Suspected},
	}
}

// Writes reports whether there are conditions to write.
func (s Step) Writes() bool {
	return slices.ContainsFunc(s.conditions(), func(w wanted) bool { return w.to != nil })
}

// Begins reports whether the node joins those of which only so many may be at once: Others.
func (s Step) Begins() bool {
	return slices.ContainsFunc([]*Condition{s.Degraded, s.NotReady, s.Suspected}, func(c *Condition) bool { return c != nil && c.is(corev1.ConditionTrue) })
}

// WaitsForOthers reports whether Others matter.
func (n *Node) WaitsForOthers() bool {
	return n.Reboots && !n.Degraded.is(corev1.ConditionTrue) && n.cause() != nil || n.late() || n.suspect() != nil
}

// WantsJobs reports whether Slurm has to be asked if a worker of the node has no jobs: its state shows none, and a reboot
// or the deletion of the Node waits for that.
func (n *Node) WantsJobs(w *Worker) bool {
	waits := n.Reboots && n.Degraded.is(corev1.ConditionTrue) || n.Replaces && n.announced() || n.late()
	return waits && w.Known == node.Yes && w.ends() == node.Yes
}

// mayBegin reports whether a node may join those of which a tenth, and at least one, may be at once.
func (o Others) mayBegin(already int) bool { return already < max(1, (o.All+1)/maxAtOnceDivisor) }

// Decide returns what to do about a Kubernetes node next. What is written comes first, one cause at a time.
func Decide(n Node) (out Step) {
	for _, list := range []*rule.List[*Node, Step]{&degradations, &suspicions, &absences, &replacements} {
		step := list.Decide(&n)
		if step.Writes() || step.Delete {
			return step
		}
		if out.Event.Reason == "" {
			out.Event = step.Event
		}
		if out.Again.IsZero() || !step.Again.IsZero() && step.Again.Before(out.Again) {
			out.Again = step.Again
		}
	}
	return out
}

// ConditionOf returns a condition of a Kubernetes node.
func ConditionOf(n *corev1.Node, kind corev1.NodeConditionType) Condition {
	for _, c := range n.Status.Conditions {
		if c.Type == kind {
			return Condition{Status: c.Status, Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time}
		}
	}
	return Condition{}
}

// Written returns the conditions of a Kubernetes node that a step is written with: those of our types that it has or is to have. A
// condition that was left out would be removed from the node: server-side apply removes what its field manager no longer sends.
func (s Step) Written(n *corev1.Node, now time.Time) []corev1.NodeCondition {
	at := metav1.NewTime(now.Truncate(time.Second))
	var out []corev1.NodeCondition
	for _, wanted := range s.conditions() {
		i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == wanted.kind })
		switch {
		case wanted.to == nil && (i < 0 || wanted.kind == HardwareIssuesSuspected && n.Status.Conditions[i].Reason != ReasonCheckFailed): // a cloud's own
		case wanted.to == nil:
			out = append(out, n.Status.Conditions[i])
		default:
			c := corev1.NodeCondition{
				Type: wanted.kind, Status: wanted.to.Status, Reason: wanted.to.Reason, Message: wanted.to.Message, LastHeartbeatTime: at, LastTransitionTime: at,
			}
			if i >= 0 && n.Status.Conditions[i].Status == c.Status {
				c.LastTransitionTime = n.Status.Conditions[i].LastTransitionTime
			}
			// A new request to a rebooter that has set NodeRebooted begins now.
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

// maxClockAhead is how far the clock of a kubelet may be ahead of ours for a time that it writes to be waited for.
const maxClockAhead = time.Minute

// readyFor reports whether the rebooter has been ready for so long, or the clock of its kubelet makes that unknowable. Then the
// time within which it has to take up a request bounds the mistake.
func (r Rebooter) readyFor(d time.Duration, now time.Time) bool {
	return r.Exists && !r.Ready.IsZero() && (!now.Before(r.Ready.Add(d)) || r.Ready.Sub(now) > maxClockAhead)
}

// readyAt returns when the rebooter will have been ready for so long; zero when it is not ready.
func (r Rebooter) readyAt(d time.Duration) time.Time {
	if !r.Exists || r.Ready.IsZero() {
		return time.Time{}
	}
	return r.Ready.Add(d)
}
