// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan

import (
	"fmt"
	"time"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// Trouble is something about a worker that a person has to look at.
type Trouble struct {
	// Reason is one of PodConditionNeedsAttention.
	Reason string
	// Message names the object and what to do.
	Message string
}

// TroubleBySlurm reports whether a trouble of this reason can be seen only while Slurm answers about the node.
func TroubleBySlurm(reason string) bool {
	return reason != slinkyv1beta1.ReasonStuckTerminating && reason != slinkyv1beta1.ReasonKubernetesNodeNotReady
}

// stuckTerminatingTimeout is how long after the end of its grace period a pod may still be there.
const stuckTerminatingTimeout = time.Minute

// lateIfNotYet returns when a pod that is being deleted should be gone; zero when that is not known, or over.
func (f *facts) lateIfNotYet() time.Time {
	if f.TerminationDeadline.IsZero() || f.late() {
		return time.Time{}
	}
	return f.TerminationDeadline.Add(stuckTerminatingTimeout)
}

// late reports whether a pod that is being deleted should be gone by now.
func (f *facts) late() bool {
	return !f.TerminationDeadline.IsZero() && !f.Now.Before(f.TerminationDeadline.Add(stuckTerminatingTimeout))
}

const deleteByHand = "Drain the node and delete the pod when its jobs have ended: the record is deleted with it, and the next pod registers again"

// troubles are all reported, in this order; the first gives the condition its reason.
//
//nolint:gochecknoglobals // a constant list
var troubles = rule.List[*facts, Trouble]{
	Question: "What does a person have to look at? (All that apply, not only the first.)",
	Rules: []rule.Rule[*facts, Trouble]{
		{
			Name: "the pod should be gone for a minute", Does: "StuckTerminating", Why: "Kubernetes does not confirm that it ended, and its successor waits for that",
			When: func(f *facts) bool { return f.situation == beingDeleted && f.late() },
			Then: func(f *facts) Trouble {
				return trouble(slinkyv1beta1.ReasonStuckTerminating, "Pod %s should have ended by %s, but Kubernetes node %s has not confirmed that it did; "+
					"the pod is replaced when it is gone. If the machine is lost, delete Node %s; if you know that slurmd does not run there any more, "+
					"delete the pod with --force", f.Pod.Name, f.TerminationDeadline.UTC().Format(time.RFC3339), f.Host.Name, f.Host.Name)
			},
		},
		{
			Name: "its Kubernetes node is not ready", Does: "KubernetesNodeNotReady", Why: "slurmd and jobs may go on there, so nothing is deleted",
			When: func(f *facts) bool { return f.situation != beingDeleted && f.Host.Ready == node.No },
			Then: func(f *facts) Trouble {
				return trouble(slinkyv1beta1.ReasonKubernetesNodeNotReady, "Kubernetes node %s is not ready; slurmd and jobs may still run there, so nothing is deleted. "+
					"If the machine is lost, delete Node %s: its pods are deleted with it, and created again elsewhere", f.Host.Name, f.Host.Name)
			},
		},
		{
			Name: "it is registered under another name", Does: "NodeNameMismatch", Why: "it is not drained before it goes",
			When: func(f *facts) bool { return f.situation == registeredElsewhere },
			Then: func(f *facts) Trouble {
				return trouble(slinkyv1beta1.ReasonNodeNameMismatch, "slurmd has registered as Slurm node %s, but the operator expects %s, so it neither drains nor deletes the worker. "+
					"Drain node %s by hand and delete the pod; the next pod registers with the right name, unless the image or spec.slurmd.args sets another", f.RegisteredAs, f.Slurm, f.RegisteredAs)
			},
		},
		{
			Name: "slurmd offers less than the record of the node wants", Does: "InvalidRegistration", Why: "Slurm gives such a node no jobs",
			When: func(f *facts) bool { return f.serves() && f.State.Has(node.InvalidReg) },
			Then: func(f *facts) Trouble {
				return trouble(slinkyv1beta1.ReasonInvalidRegistration, "slurmd on Kubernetes node %s registers with less than Slurm's record of node %s requires, so the node gets no jobs: %s. "+deleteByHand,
					f.Host.Name, f.Slurm, f.Reason.Text)
			},
		},
		{
			Name: "the pod registers with something else than the record says", Does: "RecordOutdated", Why: "Slurm goes on with the record that it made at the first registration",
			When: func(f *facts) bool {
				if !f.serves() || f.State.Has(node.InvalidReg) {
					return false
				}
				was, _ := node.ParseComment(f.Record.Comment)
				return was.Registration != "" && f.Comment.Registration != "" && was.Registration != f.Comment.Registration
			},
			Then: func(f *facts) Trouble {
				return trouble(slinkyv1beta1.ReasonRecordOutdated, "the pod registers with other values than Slurm's record of node %s has, "+
					"such as another weight, other features or less memory, and Slurm keeps using the record. "+deleteByHand, f.Slurm)
			},
		},
	},
}

// serves reports whether a worker is ready, Slurm has it, and it is to stay.
func (f *facts) serves() bool { return f.situation == staying && f.Pod.Ready }

// trouble returns a Trouble with a formatted message.
func trouble(reason, format string, args ...any) Trouble {
	return Trouble{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
