// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset_test

import (
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/nodeset"
)

// TestAChoiceWaitsToHearWhenJobsEnd is about scale-ins that take some of the busy workers.
func TestAChoiceWaitsToHearWhenJobsEnd(t *testing.T) {
	until := func(d time.Duration) func(*nodeset.Pod) {
		return func(p *nodeset.Pod) { p.Busy, p.Deadline, p.DeadlineKnown = true, noon.Add(d), true }
	}
	endless := func(p *nodeset.Pod) { p.Busy, p.DeadlineKnown = true, true }
	tests := []struct {
		name     string
		replicas int
		since    time.Duration // jobs have been asked for
		silent   bool
		pods     []nodeset.Pod
		want     nodeset.Plan
	}{
		{name: "which of two busy ones goes is not decided before it is known when their jobs end", replicas: 1, pods: []nodeset.Pod{aPod(0, busy), aPod(1, busy)},
			want: nodeset.Plan{Ask: []string{"w-1", "w-0"}, Again: noon.Add(10 * time.Second)}},
		{name: "of both", replicas: 1, pods: []nodeset.Pod{aPod(0, until(time.Hour)), aPod(1, busy)},
			want: nodeset.Plan{Ask: []string{"w-0", "w-1"}, Again: noon.Add(10 * time.Second)}},
		{name: "then the one goes whose jobs end soonest", replicas: 1, pods: []nodeset.Pod{aPod(0, until(time.Minute)), aPod(1, until(time.Hour))},
			want: nodeset.Plan{Retire: retire(nodeset.ScaleIn, "w-0")}},
		{name: "rather than one whose jobs have no end", replicas: 1, pods: []nodeset.Pod{aPod(0, until(time.Hour)), aPod(1, endless)},
			want: nodeset.Plan{Retire: retire(nodeset.ScaleIn, "w-0")}},
		{name: "but it does not wait for long", replicas: 1, since: 10 * time.Second, pods: []nodeset.Pod{aPod(0, busy), aPod(1, busy)},
			want: nodeset.Plan{Retire: retire(nodeset.ScaleIn, "w-1")}},
		{name: "counted from when it began to", replicas: 1, since: 4 * time.Second, pods: []nodeset.Pod{aPod(0, busy), aPod(1, busy)},
			want: nodeset.Plan{Ask: []string{"w-1", "w-0"}, Again: noon.Add(6 * time.Second)}},
		{name: "idle ones go meanwhile", replicas: 1, pods: []nodeset.Pod{aPod(0, busy), aPod(1, busy), aPod(2)},
			want: nodeset.Plan{Retire: retire(nodeset.ScaleIn, "w-2"), Ask: []string{"w-1", "w-0"}, Again: noon.Add(10 * time.Second)}},
		{name: "there is nothing to wait for when idle ones are enough", replicas: 2, pods: []nodeset.Pod{aPod(0, busy), aPod(1, busy), aPod(2)},
			want: nodeset.Plan{Retire: retire(nodeset.ScaleIn, "w-2")}},
		{name: "nor when all go", replicas: 0, pods: []nodeset.Pod{aPod(0, busy), aPod(1, busy)},
			want: nodeset.Plan{Retire: retire(nodeset.ScaleIn, "w-1", "w-0")}},
		{name: "nor when something else decides", replicas: 1, pods: []nodeset.Pod{aPod(0, busy, cost(-1)), aPod(1, busy)},
			want: nodeset.Plan{Retire: retire(nodeset.ScaleIn, "w-0")}},
		{name: "nor when the choice was made before", replicas: 1, pods: []nodeset.Pod{aPod(0, busy), aPod(1, busy, scaledIn)}},
		{name: "nor while Slurm does not answer", replicas: 1, silent: true, pods: []nodeset.Pod{aPod(0, busy), aPod(1, busy)},
			want: nodeset.Plan{Retire: retire(nodeset.ScaleIn, "w-1")}},
		{name: "which of two that were to go stays is not decided before either", replicas: 1, pods: []nodeset.Pod{aPod(0, busy, scaledIn), aPod(1, busy, scaledIn)},
			want: nodeset.Plan{Ask: []string{"w-1", "w-0"}, Again: noon.Add(10 * time.Second)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := nodeset.Input{Now: noon, Asked: noon, Revision: "new", Replicas: tt.replicas, Pods: tt.pods}
			if tt.silent {
				in.Asked = time.Time{}
			}
			if tt.since > 0 {
				in.AskedJobs = noon.Add(-tt.since)
			}
			check(t, in, tt.want)
		})
	}
}
