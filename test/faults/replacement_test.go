// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/health"
)

// replacementAnnounced is a cloud that announces maintenance of all machines and takes that back, while jobs run. Suspected hardware
// outlasts the maintenance. That all nodes come back is held by the end, which is compared.
func replacementAnnounced(w *world) {
	w.occupy(3*time.Minute, "w-0", "w-1")
	w.condition(health.DefaultMaintenanceType, corev1.ConditionTrue)
	w.sleep(time.Minute)
	w.condition(health.HardwareIssuesSuspected, corev1.ConditionTrue)
	w.sleep(10 * time.Second)
	w.condition(health.DefaultMaintenanceType, corev1.ConditionFalse)
	w.sleep(3 * time.Minute)
	w.condition(health.HardwareIssuesSuspected, corev1.ConditionUnknown)
	w.sleep(10 * time.Second)
	w.condition(health.HardwareIssuesSuspected, corev1.ConditionFalse)
	w.sleep(time.Minute)
}

// condition sets a condition of all Kubernetes nodes.
func (w *world) condition(kind string, status corev1.ConditionStatus) {
	for _, n := range w.sim.Objects(nodeKind) {
		w.conditionOf(n.GetName(), kind, status, "Test")
	}
}
