// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
)

// exporter writes the condition of the exporter, if the spec asks for one. Neither the phase nor Ready depend on it: a cluster without an
// exporter runs jobs all the same.
func (s *status) exporter() {
	const kind = nebiusv1.ConditionExporterAvailable
	exporter, part := s.composed.Components.Exporter, s.seen.Exporter
	switch {
	case exporter == nil:
		s.report.Drop = append(s.report.Drop, kind)
	case *exporter.Spec.Replicas == 0:
		s.report.SetCondition(kind, metav1.ConditionFalse, nebiusv1.ReasonMaintenance, "there is no exporter while slurmctld is stopped")
	case part.Ready:
		s.report.SetCondition(kind, metav1.ConditionTrue, nebiusv1.ReasonAvailable, part.Name+": "+part.Message)
	default:
		s.report.SetCondition(kind, metav1.ConditionFalse, nebiusv1.ReasonNotAvailable, part.Name+": "+part.Message)
	}
}
