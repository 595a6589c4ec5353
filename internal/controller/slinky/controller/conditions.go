// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/slurm/need"
)

// doubtful reports settings with which slurmctld starts, as far as the operator knows, but which may not work.
func doubtful(doubts problem.List) metav1.Condition {
	c := metav1.Condition{
		Type: slinkyv1beta1.ConditionConfigDoubtful, Status: metav1.ConditionFalse,
		Reason: slinkyv1beta1.ReasonKeysKnown, Message: "all keys of the configuration are known",
	}
	if len(doubts) > 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, slinkyv1beta1.ReasonUnknownKeys, doubts.Message()
		switch r := doubts[0].Reason; r {
		case slinkyv1beta1.ReasonTooManyNodes, slinkyv1beta1.ReasonHealthCheckTimeoutTooLong, slinkyv1beta1.ReasonIncludeNotLookedAfter:
			c.Reason = r
		}
	}
	return c
}

// confined returns the condition that shows whether jobs are kept to what they were given. Slurm's own defaults keep them to nothing, and
// Slinky leaves it at these: docs/contributors/predecessors/slinky-objects.md#slurmconf.
func confined(lacks []string) metav1.Condition {
	c := metav1.Condition{
		Type: slinkyv1beta1.ConditionJobsConfined, Status: metav1.ConditionTrue,
		Reason: slinkyv1beta1.ReasonControlGroupsConfine, Message: "control groups keep jobs to the cores, the memory and the devices that were allocated to them",
	}
	if len(lacks) > 0 {
		c.Status, c.Reason = metav1.ConditionFalse, slinkyv1beta1.ReasonNotConfined
		c.Message = "jobs may use more of a node than they were allocated; to prevent that, the configuration needs: " + strings.Join(lacks, ", ")
	}
	return c
}

// editWaits reports partitions and nodes that stay for the jobs that may need them, and these jobs. before is the condition as it was.
// While there are problems, nothing of the edit has been carried out. An event reports what stays, and not each job that ends.
func editWaits(out *reconcile.Report, p *plan, jobs need.Answer, before *metav1.Condition) {
	if len(p.Problems) > 0 {
		return
	}
	say := func(reason, note string) {
		out.Events = append(out.Events, reconcile.Event{Type: corev1.EventTypeNormal, Reason: reason, Action: "Configure", Note: note})
	}
	if !p.waits.Any() {
		out.Drop = append(out.Drop, slinkyv1beta1.ConditionEditWaits)
		if before != nil {
			say(slinkyv1beta1.ReasonEditDone, "nothing of the previous configuration is kept for jobs any more")
		}
		return
	}
	message := p.waits.Message(jobs)
	out.SetCondition(slinkyv1beta1.ConditionEditWaits, metav1.ConditionTrue, slinkyv1beta1.ReasonJobsNeedPartitions, message)
	if before == nil || !p.waits.IsAbout(before.Message) {
		say(slinkyv1beta1.ReasonJobsNeedPartitions, message)
	}
}
