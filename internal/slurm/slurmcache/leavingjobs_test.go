// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// tellsOf expects a text about the jobs in partition other.
func tellsOf(t *testing.T, l *Cache, want string) {
	t.Helper()
	if got := l.LeavingJobs().Words([]string{"other"}); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

func TestTheJobsThatNeedAPartitionAreCountedByKind(t *testing.T) {
	leaves(t, func(t *testing.T, _ string, s *fake.Slurm, l *Cache) {
		first := s.Submit(fake.Job{Partition: "other", NodeList: []string{"worker-0"}, CPUs: 1, Limit: time.Hour})
		s.Submit(fake.Job{Partition: "other", NodeList: []string{"worker-0"}, CPUs: 1, Limit: 30 * time.Minute})
		endless := s.Submit(fake.Job{Partition: "other", NodeList: []string{"worker-0"}, CPUs: 1})
		stopped := s.Submit(fake.Job{Partition: "other", NodeList: []string{"worker-0"}, CPUs: 1})
		s.Suspend(stopped)
		s.Submit(fake.Job{Partition: "main", NodeList: []string{"worker-0"}, CPUs: 1})
		s.Submit(fake.Job{Partition: "other", NodeList: []string{"worker-0"}})
		held := s.Submit(fake.Job{Partition: "other", NodeList: []string{"worker-0"}})
		s.Hold(held)
		start := time.Now()
		s.SetPartition("other", "DRAIN")
		l.LeavePartitions("other")
		tellsOf(t, l, "which jobs need them is not known: Slurm has not been asked yet")
		after(5 * time.Second)
		tellsOf(t, l, "jobs of other: 3 running, 1 suspended, 1 pending, 1 held (job 3 has no time limit)")
		changes := l.hub.subscribe()
		defer changes.Close()
		after(3 * time.Minute)
		if got := taken(changes); got != "" {
			t.Errorf("changed although nothing has: %s", got)
		}
		s.Finish(endless)
		s.Cancel(held)
		after(time.Minute)
		if got := taken(changes); !strings.Contains(got, Slurmctld) {
			t.Errorf("changed: %s", got)
		}
		limit := start.Add(time.Hour).UTC().Format(time.RFC3339)
		tellsOf(t, l, "jobs of other: 2 running, 1 suspended, 1 pending (job 1 ends last, by "+limit+")")
		s.Stop()
		after(time.Minute)
		tellsOf(t, l, "which jobs need them is not known: Slurm does not answer, or its answers are in doubt")
		s.Start(true)
		after(2 * time.Minute)
		s.Finish(first)
		after(time.Minute)
		if got := l.LeavingJobs().Words([]string{"other"}); !strings.Contains(got, "jobs of other: 1 running") {
			t.Errorf("it says %q", got)
		}
	})
}

// With 100,000 jobs a list of states is 8 MB.
func TestMoreJobsThanAreCountedCostNothingElseThanTheirNumber(t *testing.T) {
	leaves(t, func(t *testing.T, _ string, s *fake.Slurm, l *Cache) {
		for range maxJobsCounted + 1 {
			s.Submit(fake.Job{Partition: "main", NodeList: []string{"worker-0"}})
		}
		s.ResetCounters()
		l.needs.leave([]string{"other"})
		after(10 * time.Minute)
		tellsOf(t, l, "which jobs need them is not known: more than 3000 jobs run or wait, too many to count")
		calls := s.Counters().Calls
		if calls["GET jobs/state"]+calls["GET job"]+calls["GET jobs"] > 0 || calls["GET diag"] > 31 {
			t.Errorf("it asks for %v", calls)
		}
		if _, err := l.CollectJobs(t.Context()); err != nil {
			t.Fatal(err)
		}
		after(time.Minute)
		tellsOf(t, l, "jobs of other: none")
		l.needs.leave(nil)
		s.ResetCounters()
		after(10 * time.Minute)
		if calls := s.Counters().Calls; calls["GET diag"] > 21 || calls["GET jobs/state"] > 0 {
			t.Errorf("it goes on to ask: %v", calls)
		}
	})
}

// A count must not take more than 0.3 s of slurmrestd's time, and 2 MB.
func TestThousandsOfJobsAreCountedInTurns(t *testing.T) {
	leaves(t, func(t *testing.T, _ string, s *fake.Slurm, l *Cache) {
		for range 3000 {
			s.Submit(fake.Job{Partition: "other", NodeList: []string{"worker-0"}})
		}
		l.needs.leave([]string{"other"})
		after(30 * time.Second)
		tellsOf(t, l, "jobs of other: at least 1 running, 149 pending (job 1 has no time limit)")
		if calls := s.Counters().Calls; calls["GET job"] != 150 || calls["GET jobs/state"] != 1 || calls["GET jobs"] > 0 {
			t.Errorf("it asks for %v", calls)
		}
		after(30 * time.Minute)
		tellsOf(t, l, "jobs of other: 1 running, 2999 pending (job 1 has no time limit)")
	})
}

// slurmctld keeps jobs for some minutes after their end.
func TestJobsThatHaveEndedAreNotReadForACount(t *testing.T) {
	leaves(t, func(t *testing.T, _ string, s *fake.Slurm, l *Cache) {
		for range 300 {
			s.Finish(s.Submit(fake.Job{Partition: "other", NodeList: []string{"worker-0"}}))
		}
		s.Submit(fake.Job{Partition: "other", NodeList: []string{"worker-0"}})
		s.ResetCounters()
		l.needs.leave([]string{"other"})
		after(30 * time.Second)
		tellsOf(t, l, "jobs of other: 1 running (job 301 has no time limit)")
		if calls := s.Counters().Calls; calls["GET job"] != 1 {
			t.Errorf("it asks for %v", calls)
		}
	})
}

// 150 records of jobs are less than 2 MB.
func TestHowManyJobsAreReadForACount(t *testing.T) {
	leaves(t, func(t *testing.T, _ string, s *fake.Slurm, l *Cache) {
		for range 400 {
			s.Submit(fake.Job{Partition: "other", NodeList: []string{"worker-0"}})
		}
		l.needs.leave([]string{"other"})
		after(30 * time.Second)
		if got := s.Counters().Calls["GET job"]; got != 150 {
			t.Errorf("it reads %d jobs at first", got)
		}
		reads := func(jobs int) {
			t.Helper()
			s.ResetCounters()
			after(time.Minute)
			calls := s.Counters().Calls
			if calls["GET job"] != jobs || calls["GET jobs/state"] != 1 || calls["GET jobs"] > 0 {
				t.Errorf("it asks for %v, want %d jobs", calls, jobs)
			}
		}
		tellsOf(t, l, "jobs of other: at least 1 running, 149 pending (job 1 has no time limit)")
		reads(150)
		reads(100)
		tellsOf(t, l, "jobs of other: 1 running, 399 pending (job 1 has no time limit)")
		reads(10)
	})
}
