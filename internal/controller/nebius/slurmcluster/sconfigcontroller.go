// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
)

// sConfigController writes the condition of the program that writes files into the jail.
func (s *status) sConfigController() {
	const kind = nebiusv1.ConditionSConfigControllerAvailable
	size := s.cluster.Spec.SConfigController.Node.Size
	switch {
	case s.composed.Jail.Condition == nil:
		s.report.SetCondition(kind, metav1.ConditionFalse, nebiusv1.ReasonDisabled, "the cluster has no jail to write files into")
	case size != nil && *size == 0:
		s.report.SetCondition(kind, metav1.ConditionFalse, nebiusv1.ReasonDisabled, "spec.sConfigController.node.size is 0")
	case s.cluster.Spec.Maintenance.Downscaled():
		s.report.SetCondition(kind, metav1.ConditionFalse, nebiusv1.ReasonMaintenance, "nothing is written into the jail during maintenance")
	case s.composed.Jail.Paused:
		s.report.SetCondition(kind, metav1.ConditionFalse, nebiusv1.ReasonNotAvailable, "nothing else is written into the jail while it is overwritten")
	default:
		s.component(kind, s.sConfigControllerPart()...)
	}
}

// sConfigControllerPart returns the program that writes files into the jail as a part of the cluster; none where it rests.
func (s *status) sConfigControllerPart() []kube.Part {
	writer := s.composed.Components.SConfigController
	switch {
	case s.composed.Jail.Condition == nil:
		return nil
	case writer == nil:
		return []kube.Part{s.awaitsJail(kube.Part{Name: "Deployment " + s.cluster.SConfigControllerName(), Reason: kube.ReasonWaiting, Message: "is not created yet"})}
	case *writer.Spec.Replicas == 0:
		return nil
	}
	return []kube.Part{s.seen.SConfigController}
}
