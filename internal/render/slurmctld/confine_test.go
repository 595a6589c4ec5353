// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmctld_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
)

// A login session may lock little memory, and a job of InfiniBand locks much. So that limit is slurmd's.
func TestJobsDoNotInheritHowMuchMemoryASessionMayLock(t *testing.T) {
	for _, tt := range []struct {
		name, extra string
		want        []string
	}{
		{name: "where the user says nothing", want: []string{"PropagateResourceLimitsExcept=MEMLOCK"}},
		{name: "a user who has none inherited", extra: "PropagateResourceLimits=NONE", want: []string{"PropagateResourceLimits=NONE"}},
		{name: "a user who excepts another limit", extra: "propagateresourcelimitsexcept=NOFILE", want: []string{"propagateresourcelimitsexcept=NOFILE"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := input(t, `{}`)
			in.Controller.Spec.ExtraConf = tt.extra
			var got []string
			for line := range strings.Lines(configOf(t, slurmctld.Render(in).Objects)) {
				if strings.HasPrefix(strings.ToLower(line), "propagate") {
					got = append(got, strings.TrimSpace(line))
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatDoesNotKeepJobsToWhatTheyWereGiven(t *testing.T) {
	const task, cores, memory, devices = "TaskPlugin=task/cgroup in slurm.conf", "ConstrainCores=yes in cgroup.conf", "ConstrainRAMSpace=yes in cgroup.conf",
		"ConstrainDevices=yes in cgroup.conf"
	const all = "ConstrainCores=yes\nconstrainramspace=YES\nConstrainDevices=1\n"
	for _, tt := range []struct {
		name, extra, cgroup string
		want                []string
	}{
		{name: "Slurm's defaults", want: []string{task, cores, memory, devices}},
		{name: "everything", extra: "TaskPlugin=task/affinity,task/cgroup", cgroup: all},
		{name: "the plugin without its prefix", extra: "TaskPlugin=Affinity,Cgroup", cgroup: all},
		{name: "another plugin", extra: "TaskPlugin=task/affinity", cgroup: all, want: []string{task}},
		{name: "one of three resources is confined", extra: "TaskPlugin=task/cgroup", cgroup: "ConstrainCores=no\nConstrainRAMSpace=yes\nConstrainDevices=0\n", want: []string{cores, devices}},
		{name: "no control groups", extra: "TaskPlugin=task/affinity", cgroup: "CgroupPlugin=disabled\n" + all, want: []string{"cgroup.conf without CgroupPlugin=disabled"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := input(t, `{}`)
			in.Controller.Spec.ExtraConf = tt.extra
			if tt.cgroup != "" {
				in.Files.Config = []slurmctld.File{{ConfigMap: "files", Name: "cgroup.conf", Content: tt.cgroup}}
			}
			if diff := cmp.Diff(tt.want, slurmctld.Render(in).Unconfined); diff != "" {
				t.Error(diff)
			}
		})
	}
	external := input(t, `{external: true, externalConfig: {host: elsewhere}}`)
	if got := slurmctld.Render(external).Unconfined; got != nil {
		t.Errorf("of a slurmctld elsewhere the operator knows %q", got)
	}
}
