// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerpod

import (
	"cmp"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// Facts returns what the plan of a NodeSet needs to know about a worker pod. Seen adds what Slurm reports now.
func Facts(p *corev1.Pod) Pod {
	out := Pod{
		Name:        p.Name,
		Ordinal:     -1,
		Daemon:      p.Labels[slinkyv1beta1.LabelScalingMode] == string(slinkyv1beta1.ScalingModeDaemonSet),
		Node:        cmp.Or(p.Spec.NodeName, p.Annotations[slinkyv1beta1.AnnotationNode]),
		Hostname:    p.Spec.Hostname,
		Revision:    p.Labels[slinkyv1beta1.LabelRevisionHash],
		Phase:       string(p.Status.Phase),
		Scheduled:   p.Spec.NodeName != "",
		Terminating: p.DeletionTimestamp != nil,
		Retired:     Cause(p.Annotations[slinkyv1beta1.AnnotationRetired]),
		Protected:   p.Labels[slinkyv1beta1.LabelPodProtect] == "true",
		Cordoned:    p.Annotations[slinkyv1beta1.AnnotationPodCordon] == "true",
		Busy:        ShowsState(p, "Allocated") || ShowsState(p, "Mixed") || ShowsState(p, "Completing"),
		Created:     p.CreationTimestamp.Time,
	}
	if !out.Daemon {
		out.Ordinal = Ordinal(p)
	}
	for _, name := range RequiredChecks(p.Annotations) {
		if passed, _ := CheckPassed(p.Annotations[slinkyv1beta1.AnnotationCheckPrefix+name], Machine{}); !passed {
			out.Unchecked = append(out.Unchecked, name)
		}
	}
	out.Was = Condition(p, slinkyv1beta1.PodConditionRegistered) != nil
	if at, err := time.Parse(time.RFC3339, p.Annotations[slinkyv1beta1.AnnotationRetiredAt]); err == nil {
		out.RetiredAt = at
	}
	if cost, err := strconv.ParseInt(p.Annotations[slinkyv1beta1.AnnotationPodDeletionCost], 10, 32); err == nil {
		out.DeletionCost = int32(cost)
	}
	if deadline, err := time.Parse(time.RFC3339, p.Annotations[slinkyv1beta1.AnnotationPodDeadline]); err == nil {
		out.Deadline, out.DeadlineKnown = deadline, true
	}
	if c := Condition(p, corev1.PodScheduled); c != nil {
		out.Unschedulable = c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	}
	if c := Condition(p, corev1.PodReady); c != nil {
		out.Ready, out.ReadySince = c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
	}
	return out
}
