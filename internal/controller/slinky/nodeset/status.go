// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// count fills in the status from the pods, and returns them as the part that has to be ready. What Slurm reports of their nodes is taken
// from the pods' conditions: a change of those wakes the NodeSet.
func count(n *slinkyv1beta1.NodeSet, pods []corev1.Pod, revision string, now time.Time) kube.Part {
	s := &n.Status
	s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas = 0, 0, 0, 0
	s.SlurmIdle, s.SlurmAllocated, s.SlurmDown, s.SlurmDrain = 0, 0, 0, 0
	for i := range pods {
		p := workerpod.Facts(&pods[i])
		s.Replicas++
		if p.Revision == revision && !p.Terminating {
			s.UpdatedReplicas++
		}
		if p.Ready && !p.Terminating {
			s.ReadyReplicas++
			if least := minReady(n); least == 0 || !now.Before(p.ReadySince.Add(least)) {
				s.AvailableReplicas++
			}
		}
		countNode(s, &pods[i])
	}
	s.OutOfService = outOfService(pods)
	s.UnavailableReplicas = max(0, s.Desired-s.AvailableReplicas)

	outdated := s.UpdatedReplicas != s.Replicas && n.UpdateType() == slinkyv1beta1.UpdateRolling
	part := kube.Part{
		Name: "workers", Ready: s.AvailableReplicas >= s.Desired && s.Replicas == s.Desired && !outdated,
		Reason: slinkyv1beta1.ReasonAvailable, Message: fmt.Sprintf("%d of %d workers are available", s.AvailableReplicas, s.Desired),
	}
	switch {
	case part.Ready:
	case s.Replicas != s.Desired || outdated:
		part.Reason = slinkyv1beta1.ReasonRollingOut
		part.Message += fmt.Sprintf(", %d exist, %d are up to date", s.Replicas, s.UpdatedReplicas)
	default:
		part.Reason = slinkyv1beta1.ReasonPodsNotReady
	}
	if !part.Ready {
		part.Message += reconcile.LastWords(pods, slinkyv1beta1.NameSlurmd)
	}
	part.Message += retiring(pods)
	if workerpod.DryRun(n) {
		part.Message += fmt.Sprintf("; annotation %s keeps the operator from every step in status.plan", slinkyv1beta1.AnnotationDryRun)
	}
	return part
}

func minReady(n *slinkyv1beta1.NodeSet) time.Duration {
	return time.Duration(n.Spec.MinReadySeconds) * time.Second
}

func countNode(s *slinkyv1beta1.NodeSetStatus, p *corev1.Pod) {
	if workerpod.Says(p, "Idle") {
		s.SlurmIdle++
	}
	if workerpod.Says(p, "Allocated") || workerpod.Says(p, "Mixed") {
		s.SlurmAllocated++
	}
	if workerpod.Says(p, "Down") {
		s.SlurmDown++
	}
	if workerpod.Says(p, "Drain") && !workerpod.Says(p, "Undrain") {
		s.SlurmDrain++
	}
}

// maxRetiringShown is how many retired workers the message names.
const maxRetiringShown = 3

// retiring returns what the retired workers wait for: "; worker-3 retires: waiting for jobs to end".
func retiring(pods []corev1.Pod) string {
	var b strings.Builder
	told, more := 0, 0
	for i := range pods {
		p := &pods[i]
		c := workerpod.Condition(p, slinkyv1beta1.PodConditionRetiring)
		switch {
		case workerpod.Cause(p.Annotations[slinkyv1beta1.AnnotationRetired]) == "" || p.DeletionTimestamp != nil || c == nil:
		case told < maxRetiringShown:
			fmt.Fprintf(&b, "; %s retires: %s", p.Name, c.Message)
			told++
		default:
			more++
		}
	}
	if more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	return b.String()
}
