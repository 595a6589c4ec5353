// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

func TestRecordsOfJobsCostWhatIsNew(t *testing.T) {
	const jobs = 400
	simulate(t, 2, func(t *testing.T, s *fake.Slurm, l *Cache) {
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
		costs("1 0 400")
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
		collect(0)
		costs("1 0 500")
		s.Stop()
		after(time.Minute)
		if got, err := l.CollectJobs(t.Context()); err == nil || len(got.Jobs) != jobs+500 {
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
	last := slices.Clone(many[200:])
	slices.Reverse(last)
	tests := []struct {
		name   string
		known  map[int64]recorded
		states []rest.JobState
		want   []int64
	}{
		{"jobs that have nodes come first", nil, slices.Concat(states("PENDING", 1, 2), states("RUNNING", 3)), []int64{3, 1, 2}},
		{"tasks that wait are one record", nil, states("PENDING", 1, 1, 1), []int64{1}},
		{"jobs in another state than before are read", known("PENDING", time.Second, 1, 2), slices.Concat(states("RUNNING", 1), states("PENDING", 2)), []int64{1}},
		{"jobs that were read longest ago come next", known("RUNNING", time.Minute, 1, 2), states("RUNNING", 1, 2, 3), []int64{3, 2, 1}},
		{"all jobs that are new are read", known("RUNNING", time.Minute, many[:100]...), states("RUNNING", many...), many[100:]},
		{"some of the jobs that were read before are read", known("RUNNING", time.Minute, many...), states("RUNNING", many...), last},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &jobRecorder{known: tt.known}
			if diff := cmp.Diff(tt.want, r.plan(now, tt.states, maxRecordsReread)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// slurmrestd works a tenth of the time for the first records of all jobs, and a hundredth afterwards.
func TestTheFirstRecordsOfJobsAreReadFaster(t *testing.T) {
	simulate(t, 1, func(t *testing.T, s *fake.Slurm, l *Cache) {
		const jobs, took, interval = 2000, 5 * time.Millisecond, 30 * time.Second
		s.SetFault(func(r *http.Request) *fake.Fault {
			if strings.Contains(r.URL.Path, "/job/") {
				return &fake.Fault{Latency: took}
			}
			return nil
		})
		read := func() int {
			t.Helper()
			s.ResetCounters()
			if _, err := l.CollectJobs(t.Context()); err != nil {
				t.Fatal(err)
			}
			after(interval)
			return s.Counters().Calls["GET job"]
		}
		submit := func() {
			for range jobs {
				s.Submit(fake.Job{NodeList: []string{"worker-0"}})
			}
		}
		submit()
		if n := read(); n < 1200 || n > 1400 { // the burst of 600 ms is ten times as long, and grows meanwhile
			t.Errorf("the first answer read %d jobs", n)
		}
		if n := read(); n < 500 || n > 700 {
			t.Errorf("the second answer read %d jobs", n)
		}
		read()
		if got, err := l.CollectJobs(t.Context()); err != nil || got.Missing > 0 || len(got.Jobs) != jobs {
			t.Fatalf("%d jobs are known, %d missing, %v", len(got.Jobs), got.Missing, err)
		}
		submit()
		if n := read(); n > 200 {
			t.Errorf("an answer read %d jobs after the first ones", n)
		}
	})
}

// What is known of the jobs of one slurmrestd is not shown for another, not even while the limit allows no question.
func TestJobsOfAnotherSlurmrestdAreNotShown(t *testing.T) {
	collects := map[string]func(*Cache, context.Context) (JobRecords, error){
		"from slurmctld": (*Cache).CollectJobs,
		"from slurmdbd": func(l *Cache, ctx context.Context) (JobRecords, error) {
			return l.CollectAccountingJobs(ctx, time.Hour)
		},
	}
	for name, collect := range collects {
		t.Run(name, func(t *testing.T) {
			simulate(t, 1, func(t *testing.T, s *fake.Slurm, l *Cache) {
				s.Submit(fake.Job{NodeList: []string{"worker-0"}})
				if got, err := collect(l, t.Context()); err != nil || got.Taken.IsZero() {
					t.Fatalf("%d jobs, asked for at %s, %v", len(got.Jobs), got.Taken, err)
				}
				l.records.load.take(time.Now(), aboutRecords, 10*time.Second)
				if err := l.Set(Config{Endpoint: "http://other:6820", Issuer: signed(t, hmacKey)}); err != nil {
					t.Fatal(err)
				}
				if got, err := collect(l, t.Context()); err != nil || !got.Taken.IsZero() || len(got.Jobs) > 0 {
					t.Errorf("%d jobs, asked for at %s, %v", len(got.Jobs), got.Taken, err)
				}
			})
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
	simulate(t, 1, func(t *testing.T, s *fake.Slurm, l *Cache) {
		s.Submit(fake.Job{NodeList: []string{"worker-0"}})
		kept := func() int {
			l.records.mu.Lock()
			defer l.records.mu.Unlock()
			return len(l.records.known) + len(l.records.last.Jobs)
		}
		if _, err := l.CollectJobs(t.Context()); err != nil || kept() != 2 {
			t.Fatalf("%d are kept, %v", kept(), err)
		}
		after(recordsTimeout - time.Minute)
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
