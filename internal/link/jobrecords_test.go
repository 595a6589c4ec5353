// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/slurm/fake"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

func TestRecordsOfJobsCostWhatIsNew(t *testing.T) {
	const jobs = 400
	simulate(t, 2, func(t *testing.T, s *fake.Slurm, l *Link) {
		first := s.Submit(fake.Job{NodeList: []string{"worker-0"}, Name: "first", CPUs: 1})
		for range jobs - 1 {
			s.Submit(fake.Job{NodeList: []string{"worker-1"}})
		}
		collect := func(wantMissing int) JobRecords {
			t.Helper()
			after(30 * time.Second)
			s.ResetCounters()
			got, err := l.CollectJobs(t.Context())
			if err != nil || got.Missing != wantMissing {
				t.Fatalf("%d jobs, %d missing, %v", len(got.Jobs), got.Missing, err)
			}
			return got
		}
		costs := func(want string) {
			t.Helper()
			calls := s.Counters().Calls
			if got := fmt.Sprint(calls["GET jobs/state"], calls["GET jobs"], calls["GET job"]); got != want {
				t.Errorf("lists of states, lists of jobs and jobs: %s, want %s", got, want)
			}
		}
		if got := collect(0); len(got.Jobs) != jobs || got.Jobs[0].Name != "first" || got.Taken.IsZero() {
			t.Errorf("%d jobs, of which the first is %+v", len(got.Jobs), got.Jobs[0])
		}
		costs("1 1 0")
		collect(0)
		costs("1 0 100") // those that were read longest ago
		s.Finish(first)
		second := s.Submit(fake.Job{NodeList: []string{"worker-0"}, Name: "second"})
		got := collect(0)
		costs("1 0 100")
		if a, b := got.Jobs[0], got.Jobs[jobs]; a.ID != first || a.State[0] != "COMPLETED" || a.End.IsZero() || b.ID != second || b.Name != "second" {
			t.Errorf("the first job is %+v, the last %+v", a, b)
		}
		s.ForgetJob(first)
		if got := collect(0); len(got.Jobs) != jobs || got.Jobs[0].ID == first {
			t.Errorf("%d jobs are left", len(got.Jobs))
		}
		for range 500 {
			s.Submit(fake.Job{NodeList: []string{"worker-1"}})
		}
		collect(400) // the list has been asked for a moment ago
		costs("1 0 100")
		s.Stop()
		after(time.Minute)
		if got, err := l.CollectJobs(t.Context()); err == nil || len(got.Jobs) != jobs+100 {
			t.Errorf("%d jobs are known while slurmctld is away, %v", len(got.Jobs), err)
		}
	})
}

func TestWhichRecordsOfJobsAreRead(t *testing.T) {
	now := time.Unix(1795172262, 0)
	known := func(state string, age time.Duration, ids ...int64) map[int64]recorded {
		out := map[int64]recorded{}
		for _, id := range ids {
			out[id] = recorded{&rest.JobRecord{ID: id, State: []string{state}}, now.Add(-age - time.Duration(id)*time.Second)}
		}
		return out
	}
	states := func(state string, ids ...int64) (out []rest.JobState) {
		for _, id := range ids {
			out = append(out, rest.JobState{ID: id, State: []string{state}})
		}
		return out
	}
	many := make([]int64, 300)
	for i := range many {
		many[i] = int64(i + 1)
	}
	tests := []struct {
		name   string
		known  map[int64]recorded
		listed time.Duration
		states []rest.JobState
		want   recordPlan
	}{
		{"those that have nodes come first", nil, 0, slices.Concat(states("PENDING", 1, 2), states("RUNNING", 3)), recordPlan{read: []int64{3, 1, 2}}},
		{"tasks that wait are one record", nil, 0, states("PENDING", 1, 1, 1), recordPlan{read: []int64{1}}},
		{"what is in another state", known("PENDING", time.Second, 1, 2), 0, slices.Concat(states("RUNNING", 1), states("PENDING", 2)), recordPlan{read: []int64{1}}},
		{"then what was read longest ago", known("RUNNING", time.Minute, 1, 2), 0, states("RUNNING", 1, 2, 3), recordPlan{read: []int64{3, 2, 1}}},
		{"most of many", nil, 0, states("RUNNING", many...), recordPlan{whole: true}},
		{"most of many again", nil, time.Minute, states("RUNNING", many...), recordPlan{read: many[:maxRecordsRead]}},
		{"most of many a while later", nil, time.Hour, states("RUNNING", many...), recordPlan{whole: true}},
		{"some of many", known("RUNNING", time.Second, many[:180]...), 0, states("RUNNING", many...), recordPlan{read: many[180:280]}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &jobRecorder{known: tt.known}
			if tt.listed > 0 {
				r.listed = now.Add(-tt.listed)
			}
			got := r.plan(now, tt.states)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(recordPlan{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTasksThatHaveNotStartedAreCounted(t *testing.T) {
	r := &jobRecorder{known: map[int64]recorded{18: {JobRecord: &rest.JobRecord{ID: 18, State: []string{"PENDING"}}}}}
	waiting, running := rest.JobState{ID: 18, State: []string{"PENDING"}}, rest.JobState{ID: 19, State: []string{"RUNNING"}}
	got := r.join(time.Unix(1795172262, 0), []rest.JobState{waiting, running, waiting, waiting})
	if diff := cmp.Diff(map[int64]int{18: 3}, got.Tasks); diff != "" || len(got.Jobs) != 1 || got.Missing != 1 {
		t.Errorf("%d jobs, %d missing, tasks:\n%s", len(got.Jobs), got.Missing, diff)
	}
}

func TestJobsThatNobodyAsksForAreForgotten(t *testing.T) {
	simulate(t, 1, func(t *testing.T, s *fake.Slurm, l *Link) {
		s.Submit(fake.Job{NodeList: []string{"worker-0"}})
		kept := func() int {
			l.records.mu.Lock()
			defer l.records.mu.Unlock()
			return len(l.records.known) + len(l.records.last.Jobs)
		}
		if _, err := l.CollectJobs(t.Context()); err != nil || kept() != 2 {
			t.Fatalf("%d are kept, %v", kept(), err)
		}
		after(minTimeBetweenLists - time.Minute)
		if kept() != 2 {
			t.Errorf("a minute too early %d are kept", kept())
		}
		s.ResetCounters()
		after(2 * time.Minute)
		if calls := s.Counters().Calls; kept() != 0 || calls["GET jobs"]+calls["GET job"]+calls["GET jobs/state"] > 0 {
			t.Errorf("%d are kept, and Slurm was asked: %v", kept(), calls)
		}
		if got, err := l.CollectJobs(t.Context()); err != nil || len(got.Jobs) != 1 {
			t.Errorf("%d jobs are known afterwards, %v", len(got.Jobs), err)
		}
	})
}
