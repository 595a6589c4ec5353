// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// TestAChoiceWaitsToHearWhenJobsEnd is about scale-ins that take some of the busy workers.
func TestAChoiceWaitsToHearWhenJobsEnd(t *testing.T) {
	until := func(d time.Duration) func(*workerpod.Pod) {
		return func(p *workerpod.Pod) { p.Busy, p.Deadline, p.DeadlineKnown = true, noon.Add(d), true }
	}
	unheard := func(p *workerpod.Pod) { p.Busy = true }
	forever := func(p *workerpod.Pod) { // in the words of the annotation
		p.Busy, p.Deadline, p.DeadlineKnown = true, time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), true
	}
	endless := func(p *workerpod.Pod) { p.Busy, p.DeadlineKnown = true, true }
	tests := []struct {
		name     string
		replicas int
		since    time.Duration // jobs have been asked for
		pods     []workerpod.Pod
		want     nodesetplan.Plan
	}{
		{name: "no busy worker is chosen to go before the operator knows when their jobs end", replicas: 1, pods: []workerpod.Pod{aPod(0, unheard), aPod(1, unheard)},
			want: nodesetplan.Plan{WantJobs: []string{"w-1", "w-0"}, Again: noon.Add(10 * time.Second)}},
		{name: "no busy worker is chosen to go before the operator knows when the jobs of both end", replicas: 1, pods: []workerpod.Pod{aPod(0, until(time.Hour)), aPod(1, unheard)},
			want: nodesetplan.Plan{WantJobs: []string{"w-0", "w-1"}, Again: noon.Add(10 * time.Second)}},
		{name: "the worker goes whose jobs end soonest", replicas: 1, pods: []workerpod.Pod{aPod(0, until(time.Minute)), aPod(1, until(time.Hour))},
			want: nodesetplan.Plan{Retire: retire(workerpod.ScaleIn, "w-0")}},
		{name: "a worker goes rather than one whose jobs have no end", replicas: 1, pods: []workerpod.Pod{aPod(0, until(time.Hour)), aPod(1, endless)},
			want: nodesetplan.Plan{Retire: retire(workerpod.ScaleIn, "w-0")}},
		{name: "a worker whose jobs have no end is known as such, whatever says so", replicas: 1, pods: []workerpod.Pod{aPod(0, forever), aPod(1, endless)},
			want: nodesetplan.Plan{Retire: retire(workerpod.ScaleIn, "w-1")}},
		{name: "the choice does not wait for long", replicas: 1, since: 10 * time.Second, pods: []workerpod.Pod{aPod(0, unheard), aPod(1, unheard)},
			want: nodesetplan.Plan{Retire: retire(workerpod.ScaleIn, "w-1")}},
		{name: "the time to wait counts from when the wait began", replicas: 1, since: 4 * time.Second, pods: []workerpod.Pod{aPod(0, unheard), aPod(1, unheard)},
			want: nodesetplan.Plan{WantJobs: []string{"w-1", "w-0"}, Again: noon.Add(6 * time.Second)}},
		{name: "idle workers go while the choice waits", replicas: 1, pods: []workerpod.Pod{aPod(0, unheard), aPod(1, unheard), aPod(2)},
			want: nodesetplan.Plan{Retire: retire(workerpod.ScaleIn, "w-2"), WantJobs: []string{"w-1", "w-0"}, Again: noon.Add(10 * time.Second)}},
		{name: "there is nothing to wait for when idle ones are enough", replicas: 2, pods: []workerpod.Pod{aPod(0, unheard), aPod(1, unheard), aPod(2)},
			want: nodesetplan.Plan{Retire: retire(workerpod.ScaleIn, "w-2")}},
		{name: "there is nothing to wait for when all go", replicas: 0, pods: []workerpod.Pod{aPod(0, unheard), aPod(1, unheard)},
			want: nodesetplan.Plan{Retire: retire(workerpod.ScaleIn, "w-1", "w-0")}},
		{name: "there is nothing to wait for when something else decides", replicas: 1, pods: []workerpod.Pod{aPod(0, unheard, cost(-1)), aPod(1, unheard)},
			want: nodesetplan.Plan{Retire: retire(workerpod.ScaleIn, "w-0")}},
		{name: "there is nothing to wait for when the choice was made before", replicas: 1, pods: []workerpod.Pod{aPod(0, unheard), aPod(1, unheard, scaledIn)}},
		{name: "no worker that was to go is chosen to stay before the operator knows when jobs end", replicas: 1, pods: []workerpod.Pod{aPod(0, unheard, scaledIn), aPod(1, unheard, scaledIn)},
			want: nodesetplan.Plan{WantJobs: []string{"w-1", "w-0"}, Again: noon.Add(10 * time.Second)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := nodesetplan.Input{Now: noon, SnapshotTime: noon, NodeListTime: noon, Revision: "new", Replicas: tt.replicas, Pods: tt.pods}
			if tt.since > 0 {
				in.JobsWantedSince = noon.Add(-tt.since)
			}
			check(t, in, tt.want)
		})
	}
}

// TestWhileSlurmIsSilentTheChoiceStands is about the time before the first answer after a restart: what the pods show of their jobs may be
// old.
func TestWhileSlurmIsSilentTheChoiceStands(t *testing.T) {
	busy := func(p *workerpod.Pod) { p.Busy = true }
	in := nodesetplan.Input{Now: noon, Revision: "new", Replicas: 1, Pods: []workerpod.Pod{aPod(0), aPod(1, busy, scaledIn)}}
	if diff := cmp.Diff(nodesetplan.Plan{Desired: 1}, nodesetplan.Make(in)); diff != "" {
		t.Errorf("while Slurm is silent (-want +got):\n%s", diff)
	}
	in.SnapshotTime = noon
	if diff := cmp.Diff(nodesetplan.Plan{Desired: 1, Retire: retire(workerpod.ScaleIn, "w-0"), Unretire: []string{"w-1"}}, nodesetplan.Make(in)); diff != "" {
		t.Errorf("when it has answered (-want +got):\n%s", diff)
	}
}
