// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	plans "github.com/coxswain-hpc/coxswain/internal/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/render/worker"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// RetiredAnnotation on a worker pod is the cause for which it is to go; the worker controller drains its node and deletes
// it when nothing runs on it.
const RetiredAnnotation = "coxswain.dev/retired"

// RetiredAtAnnotation on a worker pod is since when it is to go: its jobs have the time of spec.drainTimeout from then on.
const RetiredAtAnnotation = "coxswain.dev/retired-at"

// RetiringCondition on a retired worker pod says what it waits for.
const RetiringCondition corev1.PodConditionType = "coxswain.dev/Retiring"

// Facts is what a pod's plan needs to know of it.
func Facts(p *corev1.Pod) plans.Pod {
	out := plans.Pod{
		Name:        p.Name,
		Ordinal:     -1,
		Daemon:      p.Labels[slinkyv1beta1.LabelScalingMode] == string(slinkyv1beta1.ScalingModeDaemonSet),
		Node:        cmp.Or(p.Spec.NodeName, p.Annotations[worker.NodeAnnotation]),
		Hostname:    p.Spec.Hostname,
		Revision:    p.Labels[slinkyv1beta1.LabelRevisionHash],
		Phase:       string(p.Status.Phase),
		Scheduled:   p.Spec.NodeName != "",
		Terminating: p.DeletionTimestamp != nil,
		Retired:     plans.Cause(p.Annotations[RetiredAnnotation]),
		Shielded:    p.Labels[slinkyv1beta1.LabelPodProtect] == "true",
		Cordoned:    p.Annotations[slinkyv1beta1.AnnotationPodCordon] == "true",
		Busy:        says(p, "Allocated") || says(p, "Mixed") || says(p, "Completing"),
		Created:     p.CreationTimestamp.Time,
	}
	if !out.Daemon {
		out.Ordinal = ordinal(p)
	}
	out.Was = Condition(p, slinkyv1beta1.PodConditionRegistered) != nil
	if at, err := time.Parse(time.RFC3339, p.Annotations[RetiredAtAnnotation]); err == nil {
		out.RetiredAt = at
	}
	if cost, err := strconv.ParseInt(p.Annotations[slinkyv1beta1.AnnotationPodDeletionCost], 10, 32); err == nil {
		out.DeletionCost = int32(cost)
	}
	if deadline, err := time.Parse(time.RFC3339, p.Annotations[slinkyv1beta1.AnnotationPodDeadline]); err == nil {
		out.Deadline, out.DeadlineKnown = deadline, true
	}
	if c := Condition(p, corev1.PodReady); c != nil {
		out.Ready, out.ReadySince = c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
	}
	return out
}

// says is whether Slurm, when it last said something about the worker's node, said this state; see node.AllConditions.
func says(p *corev1.Pod, state string) bool {
	c := Condition(p, corev1.PodConditionType(node.ConditionPrefix+state))
	return c != nil && c.Status == corev1.ConditionTrue
}

// Condition is the condition of that type, or nil.
func Condition(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == kind {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// ordinal is the number at the end of the name of a pod made in scaling mode StatefulSet.
func ordinal(p *corev1.Pod) int {
	number, err := strconv.Atoi(p.Name[strings.LastIndexByte(p.Name, '-')+1:])
	if err != nil {
		return -1
	}
	return number
}

// SlurmNode is the name of a worker's node in Slurm.
func SlurmNode(p *corev1.Pod) string {
	switch {
	case p.Spec.HostNetwork:
		return p.Spec.NodeName
	case p.Spec.Hostname != "":
		return p.Spec.Hostname
	default:
		return p.Name
	}
}
