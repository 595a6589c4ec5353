// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestFeaturesOfSomeWorkers are variables of slurmd's container, and NodeSet lines for partitions.
func TestFeaturesOfSomeWorkers(t *testing.T) {
	for name, test := range map[string]struct {
		features, problem, note string
		want                    []string
	}{
		"no feature is asked for":                  {features: `[]`},
		"a feature is that of some nodes":          {features: `[{name: fast, hostlistExpr: "worker-[0-2,5]", nodesetName: quick}]`, want: []string{"fast=worker-[0-2,5]"}},
		"a feature has nodes at two places":        {features: `[{name: b, hostlistExpr: worker-7}, {name: a.b-c, hostlistExpr: worker-1}, {name: b, hostlistExpr: worker-6}]`, want: []string{"a.b-c=worker-1", "b=worker-[6-7]"}},
		"nodes of others are left out":             {features: `[{name: a, hostlistExpr: "big-[0-9],worker-1,worker-02,worker-x"}]`, want: []string{"a=worker-1"}},
		"a feature has no node of these workers":   {features: `[{name: a, hostlistExpr: big-1}]`, note: "spec.workerFeatures[0].hostlistExpr: none of its nodes"},
		"a feature without a host list is refused": {features: `[{name: a, hostlistExpr: "worker-[0"}]`, problem: "spec.workerFeatures[0].hostlistExpr"},
		"a feature of too many nodes is refused":   {features: `[{name: a, hostlistExpr: "worker-[0-99999999]"}]`, problem: "spec.workerFeatures[0].hostlistExpr"},
	} {
		t.Run(name, func(t *testing.T) {
			out := Cluster(load(t).cluster(t, `{slurmNodes: {worker: {size: 1}}, workerFeatures: `+test.features+`}`))
			if (test.problem == "") != (len(out.Problems) == 0) || test.problem != "" && out.Problems[0].Path != test.problem {
				t.Fatalf("problems are %v, want %q", out.Problems, test.problem)
			}
			if !strings.Contains(strings.Join(out.Notes, "\n"), test.note) || len(out.Ignored) > 0 {
				t.Errorf("notes are %q, want %q; ignored are %q", out.Notes, test.note, out.Ignored)
			}
			var slurmd corev1.Container
			if err := json.Unmarshal(out.Components.NodeSets[0].Spec.Slurmd.Raw, &slurmd); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range slurmd.Env {
				if feature, ok := strings.CutPrefix(e.Name, "SLURM_FEATURE_"); ok {
					got = append(got, feature+"="+e.Value)
				}
			}
			if test.problem == "" && !slices.Equal(got, test.want) {
				t.Errorf("features are %q, want %q", got, test.want)
			}
			if line := "NodeSet=quick Feature=fast\n"; strings.Contains(test.features, "quick") && !strings.Contains(out.Components.Controller.Spec.ExtraConf, line) {
				t.Errorf("slurm.conf lacks %s", line)
			}
		})
	}
}
