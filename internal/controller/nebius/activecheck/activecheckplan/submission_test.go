// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheckplan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// nodesOf are nodes given as "name:STATE+FLAG".
func nodesOf(specs ...string) (out []rest.Node) {
	for _, spec := range specs {
		name, state, _ := strings.Cut(spec, ":")
		out = append(out, rest.Node{Name: name, State: strings.Split(state, "+")})
	}
	return out
}

func TestWhichJobsARunIs(t *testing.T) {
	nodes := nodesOf("c:MIXED", "a:IDLE+DYNAMIC_NORM", "b:ALLOCATED", "drained:IDLE+DRAIN", "down:DOWN", "silent:IDLE+NOT_RESPONDING", "off:IDLE+POWERED_DOWN",
		"new:IDLE+SOMETHING", "unknown:UNKNOWN", "reserved:IDLE+RESERVED", "boots:IDLE+REBOOT_ISSUED", "canceled:IDLE+REBOOT_CANCELED")
	for name, test := range map[string]struct {
		run  Run
		want []string
	}{
		"a plain one":                        {Run{}, []string{"hidden"}},
		"in a reservation":                   {Run{Reservation: "r"}, []string{"hidden in r"}},
		"a reservation comes before workers": {Run{Reservation: "r", EachWorker: true}, []string{"hidden in r"}},
		"each healthy worker":                {Run{EachWorker: true}, []string{"hidden on a", "hidden on b", "hidden on c", "hidden on canceled", "hidden on new"}},
		"a limit that does not bind":         {Run{EachWorker: true, Max: 5}, []string{"hidden on a", "hidden on b", "hidden on c", "hidden on canceled", "hidden on new"}},
		"an array":                           {Run{Array: true}, []string{"background on a", "background on b", "background on c", "background on canceled", "background on new"}},
		"both":                               {Run{Array: true, EachWorker: true}, []string{"hidden on a", "hidden on b", "hidden on c", "hidden on canceled", "hidden on new"}},
	} {
		t.Run(name, func(t *testing.T) {
			test.run.Check, test.run.Given.Script, test.run.Environment, test.run.Marker = "gpu", "#!/bin/true", []string{"A=b"}, "mine"
			if test.run.Hidden == "" {
				test.run.Hidden, test.run.Background = "hidden", "background"
			}
			var got []string
			for _, s := range Submissions(test.run, nodes, rand.New(rand.NewPCG(1, 2))) {
				text := s.Partition
				if s.Reservation != "" {
					text += " in " + s.Reservation
				}
				if len(s.Nodes) > 0 {
					text += fmt.Sprintf(" on %s", strings.Join(s.Nodes, ","))
				}
				got = append(got, text)
				if s.Name != "gpu" || s.Comment != strings.TrimSpace("mine "+strings.Join(s.Nodes, ",")) || s.Script != "#!/bin/true" || s.Directory == "" || s.Output == "" || len(s.Environment) == 0 {
					t.Errorf("%+v", s)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if jobs := Submissions(Run{EachWorker: true}, nil, nil); len(jobs) > 0 {
		t.Errorf("without a node there are %v", jobs)
	}
}

// TestACommentOfTheScriptIsKept: the job is found by its comment, and check-runner reads there that its user wants no checks.
func TestACommentOfTheScriptIsKept(t *testing.T) {
	for name, test := range map[string]struct {
		given string
		each  bool
		want  string
		skips bool
	}{
		"a job has no comment":                        {want: "coxswain.dev/activecheck u"},
		"a job on each worker has no comment":         {each: true, want: "coxswain.dev/activecheck u a"},
		"a comment asks for no checks":                {given: "skip_checks", want: "coxswain.dev/activecheck u comment=skip_checks", skips: true},
		"a comment asks for no checks on each worker": {given: "skip_checks", each: true, want: "coxswain.dev/activecheck u a comment=skip_checks", skips: true},
		"a comment says something else":               {given: "a b", each: true, want: "coxswain.dev/activecheck u a comment=a b"},
		"a comment looks like ours":                   {given: "a comment=skip_checks", want: "coxswain.dev/activecheck u comment=a comment=skip_checks"},
		"a comment looks like a node":                 {given: "b", want: "coxswain.dev/activecheck u comment=b"},
	} {
		t.Run(name, func(t *testing.T) {
			job := aRun(t, "")
			jobs := Submissions(Run{Given: rest.Submission{Comment: test.given}, Marker: marker(job), EachWorker: test.each}, nodesOf("a:IDLE"), rand.New(rand.NewPCG(1, 2)))
			if len(jobs) != 1 || jobs[0].Comment != test.want {
				t.Fatalf("%+v, want %q", jobs, test.want)
			}
			if got := (&passivecheck.Job{Comment: jobs[0].Comment}).Skips(); got != test.skips {
				t.Errorf("check-runner skips the checks: %v", got)
			}
			nodes, ours := ReadMarker(job, jobs[0].Comment)
			if !ours || nodes != strings.Join(jobs[0].Nodes, ",") {
				t.Errorf("it is found: %v, with node %q", ours, nodes)
			}
		})
	}
}

func TestALimitChoosesAmongHealthyNodesByChance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, seed := rapid.IntRange(1, 5).Draw(t, "limit"), rapid.Uint64().Draw(t, "seed")
		nodes := nodesOf("a:IDLE", "b:IDLE", "c:DOWN", "d:IDLE", "e:MIXED")
		names := chosen(nodes, false, limit, rand.New(rand.NewPCG(seed, 0)))
		if len(names) != min(limit, 4) || !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) || slices.Contains(names, "c") {
			t.Fatalf("chosen are %v", names)
		}
	})
}
