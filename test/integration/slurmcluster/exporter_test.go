// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
)

// Not parallel: definitions are there for all tests of the server.
func TestAnExporterAndItsPodMonitor(t *testing.T) {
	w := newWorld(t)
	spec := demoSpec()
	spec.SlurmNodes.Exporter = nebiusv1.Exporter{Enabled: true}
	c := w.cluster("demo", spec)
	deployment, token := &appsv1.Deployment{ObjectMeta: w.meta("demo-exporter")}, &slinkyv1beta1.Token{ObjectMeta: w.meta("demo-exporter")}
	account := &corev1.ServiceAccount{ObjectMeta: w.meta("demo-exporter-sa")}
	w.exists(deployment, token, account)
	if token.Spec.Username != "nobody" {
		t.Errorf("the exporter asks Slurm as %s", token.Spec.Username)
	}
	await(w, c, func(c *nebiusv1.SlurmCluster) error {
		return condition(c.Status.Conditions, nebiusv1.ConditionExporterAvailable, metav1.ConditionFalse, "NotAvailable", "Deployment demo-exporter")
	})

	w.define("testdata/podmonitors.yaml")
	monitor := w.object(compose.PodMonitorKind, "demo-exporter")
	w.exists(monitor)
	edit(w, c, func(c *nebiusv1.SlurmCluster) { c.Spec.SlurmNodes.Exporter.PodMonitorConfig.Interval = "17s" })
	await(w, monitor, func(m *unstructured.Unstructured) error {
		endpoints, _, _ := unstructured.NestedSlice(m.Object, "spec", "podMetricsEndpoints")
		for _, e := range endpoints {
			if endpoint, _ := e.(map[string]any); endpoint["interval"] != "17s" {
				return fmt.Errorf("an endpoint is %v", e)
			}
		}
		return nil
	})

	edit(w, c, func(c *nebiusv1.SlurmCluster) { c.Spec.SlurmNodes.Exporter.Enabled = false })
	w.gone(monitor, deployment, token, account)
	await(w, c, func(c *nebiusv1.SlurmCluster) error {
		if found := meta.FindStatusCondition(c.Status.Conditions, nebiusv1.ConditionExporterAvailable); found != nil {
			return fmt.Errorf("there is a condition of an exporter that is not wanted: %v", found)
		}
		return nil
	})
}
