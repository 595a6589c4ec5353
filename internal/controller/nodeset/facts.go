// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/component"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/link"
	plans "github.com/coxswain-hpc/coxswain/internal/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// RetiredAnnotation on a worker pod is the cause for which it is to go; the worker controller drains its node and deletes
// it when nothing runs on it.
const RetiredAnnotation = "coxswain.dev/retired"

// Facts is what a pod's plan needs to know of it.
func Facts(p *corev1.Pod) plans.Pod {
	out := plans.Pod{
		Name:        p.Name,
		Ordinal:     ordinal(p),
		Revision:    p.Labels[slinkyv1beta1.LabelRevisionHash],
		Phase:       string(p.Status.Phase),
		Scheduled:   p.Spec.NodeName != "",
		Terminating: p.DeletionTimestamp != nil,
		Retired:     plans.Cause(p.Annotations[RetiredAnnotation]),
		Cordoned:    p.Annotations[slinkyv1beta1.AnnotationPodCordon] == "true",
		Created:     p.CreationTimestamp.Time,
	}
	if cost, err := strconv.ParseInt(p.Annotations[slinkyv1beta1.AnnotationPodDeletionCost], 10, 32); err == nil {
		out.DeletionCost = int32(cost)
	}
	if deadline, err := time.Parse(time.RFC3339, p.Annotations[slinkyv1beta1.AnnotationPodDeadline]); err == nil {
		out.Deadline = deadline
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			out.Ready, out.ReadySince = c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
		}
	}
	return out
}

// ordinal is the number at the end of the pod's name; a pod of ours always has one.
func ordinal(p *corev1.Pod) int {
	number, err := strconv.Atoi(p.Name[strings.LastIndexByte(p.Name, '-')+1:])
	if err != nil {
		return -1
	}
	return number
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

// count fills in the status from pods and from what Slurm says of their nodes.
func (r *reconciler) count(n *slinkyv1beta1.NodeSet, pods []corev1.Pod, revision string, out *component.Plan) {
	s := &n.Status
	s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas = 0, 0, 0, 0
	s.SlurmIdle, s.SlurmAllocated, s.SlurmDown, s.SlurmDrain = 0, 0, 0, 0
	var snapshot *link.Snapshot
	if l, ok := r.links.Get(link.Key{Namespace: n.Namespace, Name: n.Spec.ControllerRef.Name}); ok {
		snapshot = l.Snapshot()
	}
	now := r.Clock.Now()
	for i := range pods {
		p := Facts(&pods[i])
		s.Replicas++
		if p.Revision == revision && !p.Terminating {
			s.UpdatedReplicas++
		}
		if p.Ready && !p.Terminating {
			s.ReadyReplicas++
			if !now.Before(p.ReadySince.Add(seconds(n.Spec.MinReadySeconds))) {
				s.AvailableReplicas++
			}
		}
		if snapshot != nil {
			countState(s, snapshot.State(SlurmNode(&pods[i])))
		}
	}
	s.UnavailableReplicas = max(0, s.Desired-s.AvailableReplicas)
	part := kube.Part{
		Name: "workers", Ready: s.AvailableReplicas >= s.Desired && s.Replicas == s.Desired && s.UpdatedReplicas == s.Replicas,
		Reason: slinkyv1beta1.ReasonAvailable, Message: fmt.Sprintf("%d of %d workers are available", s.AvailableReplicas, s.Desired),
	}
	switch {
	case part.Ready:
	case s.Replicas != s.Desired || s.UpdatedReplicas != s.Replicas:
		part.Reason = slinkyv1beta1.ReasonRollingOut
		part.Message += fmt.Sprintf(", %d exist, %d are up to date", s.Replicas, s.UpdatedReplicas)
	default:
		part.Reason = slinkyv1beta1.ReasonPodsNotReady
	}
	out.Parts = append(out.Parts, part)
}

func countState(s *slinkyv1beta1.NodeSetStatus, state node.State) {
	switch state.Base() {
	case node.Idle:
		s.SlurmIdle++
	case node.Allocated, node.Mixed:
		s.SlurmAllocated++
	}
	if state.Down() == node.Yes {
		s.SlurmDown++
	}
	if state.Drain() == node.Yes {
		s.SlurmDrain++
	}
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
