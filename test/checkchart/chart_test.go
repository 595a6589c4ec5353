// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checkchart tests chart coxswain-activechecks: what it renders, and its scripts, which run with programs that the tests make.
package checkchart

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/activecheck/activecheckplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/batch"
	"github.com/coxswain-hpc/coxswain/internal/testing/chart"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
)

// render returns the checks of the chart by name, with some values beside the name of the cluster.
func render(t *testing.T, values string) map[string]*nebiusv1alpha1.ActiveCheck {
	t.Helper()
	out := map[string]*nebiusv1alpha1.ActiveCheck{}
	text := chart.Render(t, "coxswain-activechecks", "jobs", "--set", strings.Trim("slurmClusterRefName=demo,"+values, ","))
	for _, document := range chart.Documents(text) {
		check := &nebiusv1alpha1.ActiveCheck{}
		if err := yaml.UnmarshalStrict(document, check); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		out[check.Name] = check
	}
	return out
}

func TestTheChartByDefault(t *testing.T) {
	t.Parallel()
	golden.Check(t, "default.yaml", chart.Render(t, "coxswain-activechecks", "jobs", "--set", "slurmClusterRefName=demo"))
}

// everything switches on what the chart has.
const everything = "gpus.enabled=true,gpus.perNode=8,checks.prepull-container-image.enabled=true,checks.enroot-cleanup.enabled=true"

func TestEveryCheckIsOneThatTheOperatorTakes(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]string{"as it comes": "", "with everything": everything} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := render(t, values)
			for name, check := range all {
				out := activecheckplan.Decide(activecheckplan.Input{Check: check, Checks: all})
				if len(out.Problems) > 0 || len(out.Ignored) > 0 {
					t.Errorf("%s has problems %v and fields without effect %v", name, out.Problems, out.Ignored)
				}
				for _, before := range check.Spec.DependsOn {
					if all[before] == nil {
						t.Errorf("%s waits for %s, which is not there", name, before)
					}
				}
			}
		})
	}
}

func TestWhatAJobOfACheckAsksFor(t *testing.T) {
	t.Parallel()
	all := render(t, everything)
	for name, check := range all {
		if !activecheckplan.IsSlurmJob(check) {
			continue
		}
		got, err := batch.Parse(check.Spec.SlurmJobSpec.SbatchScript, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.TimeLimit == 0 || got.MemoryPerNode == nil {
			t.Errorf("%s does not bound its time and its memory: %+v", name, got)
		}
		if tests := strings.Contains(got.Script, "nvidia-smi"); tests != (got.GPUsPerNode == "8") {
			t.Errorf("%s asks for GPUs %q", name, got.GPUsPerNode)
		}
	}
}

func TestValuesDecideWhichChecksThereAre(t *testing.T) {
	t.Parallel()
	cpu := []string{
		"create-user-soperatorchecks", "ensure-healthy-nodes", "mem-perf", "soperator-outputs-logs-cleaner", "ssh-check", "wait-for-topology",
	}
	tests := []struct {
		name, values string
		want         []string
		waits        []string // of ensure-healthy-nodes
	}{
		{name: "no test of GPUs is made by default", want: cpu, waits: []string{"ssh-check", "wait-for-topology", "mem-perf"}},
		{name: "a check that is switched off is waited for by none", values: "checks.mem-perf.enabled=false",
			want: without(cpu, "mem-perf"), waits: []string{"ssh-check", "wait-for-topology"}},
		{name: "a check that is null is waited for by name, as one of somebody else", values: "checks.mem-perf=null",
			want: without(cpu, "mem-perf"), waits: []string{"ssh-check", "wait-for-topology", "mem-perf"}},
		{name: "a check is added with a script of its own", values: `checks.own.inlineScript=#!/bin/sh,checks.own.eachWorkerJobs=true`,
			want: slices.Sorted(slices.Values(append([]string{"own"}, cpu...))), waits: []string{"ssh-check", "wait-for-topology", "mem-perf"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			all := render(t, test.values)
			var names []string
			for name := range all {
				names = append(names, name)
			}
			slices.Sort(names)
			if diff := cmp.Diff(test.want, names); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.waits, all["ensure-healthy-nodes"].Spec.DependsOn); diff != "" {
				t.Errorf("ensure-healthy-nodes waits for others (-want +got):\n%s", diff)
			}
		})
	}
}

func without(names []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == one })
}
