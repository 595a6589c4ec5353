// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestPortsOfSlurmd are those of the nodes and of the Service of slurmNodes.worker. The default leaves no trace.
func TestPortsOfSlurmd(t *testing.T) {
	out := Cluster(load(t).cluster(t, `{slurmNodes: {worker: {size: 1, slurmd: {port: 7000}}}}`, "a {slurmd: {port: 7001}, nodeConfig: {static: Weight=3}}", "b {slurmd: {port: 6818}}", "c {}"))
	if len(out.Problems) > 0 || len(out.Ignored) > 0 {
		t.Fatalf("problems %v, ignored %v", out.Problems, out.Ignored)
	}
	var got []string
	for _, set := range out.Components.NodeSets {
		got = append(got, set.Name+" "+set.Spec.ExtraConf)
	}
	if want := []string{"demo-worker Port=7000", "demo-a Port=7001 Weight=3", "demo-b ", "demo-c "}; !slices.Equal(got, want) {
		t.Errorf("nodes register with %q, want %q", got, want)
	}
	for name, want := range map[string]int32{"demo-worker-svc": 7000, "demo-nodeset-svc": 6818} {
		found := false
		for _, object := range out.Objects {
			if service, ok := object.(*corev1.Service); ok && service.Name == name {
				found = true
				if got := service.Spec.Ports[0]; got.Port != want || got.TargetPort.IntVal != want {
					t.Errorf("Service %s has port %+v, want %d", name, got, want)
				}
			}
		}
		if !found {
			t.Errorf("there is no Service %s", name)
		}
	}
}
