// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"fmt"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

func TestJobsAreFollowedUntilTheyHaveEnded(t *testing.T) {
	simulate(t, 2, func(t *testing.T, s *fake.Slurm, l *Cache) {
		first := s.Submit(fake.Job{NodeList: []string{"worker-0"}})
		second := s.Submit(fake.Job{NodeList: []string{"worker-0"}}) // which waits
		expect := func(id int64, want string) {
			t.Helper()
			if state, exists := l.JobState(id); fmt.Sprint(exists, state) != want {
				t.Errorf("job %d is %s %v, want %s", id, exists, state, want)
			}
		}
		after(10 * time.Second)
		expect(first, "Unknown []")
		changes := l.hub.subscribe()
		defer changes.Close()
		l.FollowJobs("run", first, second, 99)
		after(2 * time.Second)
		expect(first, "Yes [RUNNING]")
		expect(second, "Yes [PENDING]")
		expect(99, "No []")
		if got := taken(changes); got != "main:/followed" {
			t.Errorf("changed: %s", got)
		}
		s.Fail(first, 1)
		s.Cancel(second)
		after(time.Minute)
		expect(first, "Yes [FAILED]")
		expect(second, "Yes [CANCELLED]")
		_ = taken(changes)
		// A job that has ended is no longer asked for, although it is still followed.
		s.ResetCounters()
		after(time.Minute)
		if calls := s.Counters().Calls["GET jobs"]; calls != 0 {
			t.Errorf("the jobs were asked for %d times after their end", calls)
		}
		l.FollowJobs("run")
		expect(first, "Unknown []")
	})
}

func TestWhileSlurmIsAwayNoJobIsForgotten(t *testing.T) {
	simulate(t, 1, func(t *testing.T, s *fake.Slurm, l *Cache) {
		id := s.Submit(fake.Job{NodeList: []string{"worker-0"}})
		after(10 * time.Second)
		s.Stop()
		after(time.Minute)
		l.FollowJobs("run", id)
		after(time.Minute)
		if state, exists := l.JobState(id); exists != node.Unknown {
			t.Errorf("it is %v, %s", state, exists)
		}
		s.Start(true)
		after(time.Minute)
		if state, exists := l.JobState(id); exists != node.Yes {
			t.Errorf("it is %v, %s", state, exists)
		}
		s.Finish(id)
		after(10 * time.Second)
		s.ForgetJob(id)
		l.FollowJobs("other", id)
		after(time.Minute)
		if state, exists := l.JobState(id); exists != node.Yes || state[0] != "COMPLETED" {
			t.Errorf("after its end it is %v, %s", state, exists)
		}
	})
}
