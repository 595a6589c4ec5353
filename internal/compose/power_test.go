// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPowerSaving(t *testing.T) {
	d := load(t)
	programs := []string{
		"ResumeProgram=/bin/true", "ResumeRate=100", "SuspendProgram=/bin/true", "SuspendRate=100", "SuspendTimeout=90",
	}
	for name, test := range map[string]struct {
		spec     string
		nodeSets []string
		want     []string
		ignored  []string
	}{
		"no ephemeral nodes": {spec: `{}`, nodeSets: []string{"a {}"}},
		"a time without ephemeral nodes": {
			spec: `{slurmConfig: {suspendTime: 300, resumeTimeout: 60}}`, nodeSets: []string{"a {}"}, want: []string{"ResumeTimeout=60", "SuspendTime=300"},
			ignored: []string{"spec.slurmConfig.suspendTime (without ephemeral nodes, and without SuspendProgram in spec.customSlurmConfig)"},
		},
		"ephemeral nodes": {
			spec: `{slurmConfig: {suspendTime: 300}}`, nodeSets: []string{"a {ephemeralNodes: true, replicas: 4}"}, want: append([]string{"SuspendTime=300"}, programs...),
		},
		"ephemeral nodes that are powered down only by request": {
			spec: `{}`, nodeSets: []string{"a {ephemeralNodes: true}"}, want: append([]string{"SuspendTime=1000000000"}, programs...),
		},
		"beside nodes that always run": {
			spec:     `{slurmConfig: {suspendTime: 300}, slurmNodes: {worker: {size: 2}}}`,
			nodeSets: []string{"a {ephemeralNodes: true}", "b {replicas: 70}", "none {replicas: 0}"},
			want:     append([]string{"SuspendExcNodes=worker-[0-63],b-[0-127]", "SuspendTime=300"}, programs...),
		},
		"with a program of the user's": {
			spec: `{slurmConfig: {suspendTime: 300}, customSlurmConfig: "SuspendProgram=/off\nSuspendTimeout=10"}`, nodeSets: []string{"a {ephemeralNodes: true}"},
			want: []string{"ResumeProgram=/bin/true", "ResumeRate=100", "SuspendProgram=/off", "SuspendRate=100", "SuspendTime=300", "SuspendTimeout=10"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := Cluster(d.cluster(t, test.spec, test.nodeSets...))
			var got []string
			for line := range strings.Lines(out.Components.Controller.Spec.ExtraConf) {
				if line == "ResumeTimeout=1800\n" { // the API's default
					continue
				}
				if strings.HasPrefix(line, "Suspend") || strings.HasPrefix(line, "Resume") {
					got = append(got, strings.TrimSpace(line))
				}
			}
			slices.Sort(got)
			slices.Sort(test.want)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.ignored, out.Ignored); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnEphemeralNodeSetSavesPower(t *testing.T) {
	d := load(t)
	for spec, want := range map[string]int32{"{}": -1, "{ephemeralNodes: true}": 1, "{ephemeralNodes: true, initialNumberEphemeralNodes: 0}": 0} {
		in := d.cluster(t, "{}", "a "+spec)
		out := NodeSet(in.Cluster, &in.NodeSets[0]).Object.Spec.PowerSaving
		if got := out; (got == nil) != (want < 0) || got != nil && *got.Initial != want {
			t.Errorf("%s makes %+v, want %d", spec, got, want)
		}
	}
}
