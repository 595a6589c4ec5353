// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// tell writes a plan as a table, one step a line.
func tell(in nodesetplan.Input, all bool, waiting map[string]string) string {
	name := func(p workerpod.Place) string { return fmt.Sprintf("w-%d", p.Ordinal) }
	steps, total := nodesetplan.Steps(in, nodesetplan.Make(in), all, name, waiting)
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&b, "%-8s %s %s\n", s.Action, s.Pod, s.Text())
	}
	if total > len(steps) {
		fmt.Fprintf(&b, "and %d more\n", total-len(steps))
	}
	return b.String()
}

func TestPlansAreTold(t *testing.T) {
	const job = "waiting for job 812 of alice, which ends no later than 2026-11-20T14:20:00Z"
	jobs := map[string]string{
		"w-0": "waiting for 2 jobs, the last of which is job 812, which has no time limit; spec.drainTimeout ends them at 2026-11-20T14:20:00Z",
		"w-1": "waiting for jobs to end",
	}
	var many []workerpod.Pod
	for i := range 40 {
		many = append(many, aPod(i, old))
	}
	tests := []struct {
		file    string
		all     bool
		in      nodesetplan.Input
		waiting map[string]string
	}{
		{"rest.txt", true, nodesetplan.Input{Replicas: 2, Pods: []workerpod.Pod{aPod(0), aPod(1)}}, nil},
		{"everything.txt", true, nodesetplan.Input{Replicas: 5, Rolling: true, MaxUnavailable: 3, Pods: []workerpod.Pod{
			aPod(0, old), aPod(1, failed), aPod(2, updating), aPod(3, old, updating, busy)}}, map[string]string{"w-3": job}},
		{"rolling.txt", false, nodesetplan.Input{Replicas: 4, Rolling: true, MaxUnavailable: 1, Pods: []workerpod.Pod{
			aPod(0, old), aPod(1, old, updating, busy), aPod(2, old, busy), aPod(3)}}, map[string]string{"w-1": job}},
		{"many.txt", false, nodesetplan.Input{Replicas: 40, Rolling: true, MaxUnavailable: 2, Pods: many}, nil},
		{"scheduled.txt", false, nodesetplan.Input{Replicas: 2, Scheduled: true, Pods: []workerpod.Pod{aPod(0, old), aPod(1)}}, nil},
		{"jobs.txt", false, nodesetplan.Input{Pods: []workerpod.Pod{aPod(0), aPod(1), aPod(2)}}, jobs},
		{"ondelete.txt", true, nodesetplan.Input{Replicas: 2, Pods: []workerpod.Pod{aPod(0, old), aPod(1)}}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			tt.in.Now, tt.in.Revision = noon, "new"
			golden.Check(t, tt.file, []byte(tell(tt.in, tt.all, tt.waiting)))
		})
	}
}
