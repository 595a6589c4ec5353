// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmctld_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
)

// Without these a job whose epilog hangs, or whose processes do not die, holds its nodes for ever.
func TestNoJobCompletesForEver(t *testing.T) {
	const script, process = "PrologEpilogTimeout=3600", "UnkillableStepTimeout=180"
	for _, tt := range []struct {
		name, extra string
		want        []string
	}{
		{name: "where the user says nothing, the operator does", want: []string{script, process}},
		{name: "the user's own values win", extra: "prologepilogtimeout=60\nUnkillableStepTimeout=90", want: []string{"PrologEpilogTimeout=60", "UnkillableStepTimeout=90"}},
		{name: "a user may wait for ever", extra: "PrologEpilogTimeout=65534", want: []string{"PrologEpilogTimeout=65534", process}},
		{name: "EpilogTimeout, a newer key, counts for its part", extra: "EpilogTimeout=60", want: []string{script, process, "EpilogTimeout=60"}},
		{name: "with a time for messages that leaves three minutes", extra: "MessageTimeout=36", want: []string{script, process}},
		{name: "with a longer time for messages Slurm's default follows it", extra: "MessageTimeout=100", want: []string{script}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := input(t, `{}`)
			in.Controller.Spec.ExtraConf = tt.extra
			var got []string
			for line := range strings.Lines(configOf(t, slurmctld.Render(in).Objects)) {
				if strings.Contains(line, "EpilogTimeout=") || strings.HasPrefix(line, "Unkillable") {
					got = append(got, strings.TrimSpace(line))
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
