// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmctld

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

func TestServiceMonitorsAreKnownByTheFieldsThatAreWritten(t *testing.T) {
	c := &slinkyv1beta1.Controller{}
	c.Name, c.Namespace = "demo", "slurm"
	c.Spec.Metrics.ServiceMonitor = &slinkyv1beta1.ServiceMonitor{Enabled: true}
	written := map[string]bool{}
	spec, _ := ServiceMonitor(c).Object["spec"].(map[string]any)
	for field, value := range spec {
		members, _ := value.(map[string]any)
		if list, ok := value.([]any); ok {
			members, _ = list[0].(map[string]any)
		}
		for member := range members {
			written["spec."+field+"."+member] = true
		}
	}
	known := map[string]bool{}
	for _, field := range ServiceMonitors().Fields {
		known[field] = true
	}
	if diff := cmp.Diff(known, written); diff != "" {
		t.Errorf("(-known by +written):\n%s", diff)
	}
}
