// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

func TestJobsAreFoundThatAreSuspendedOnNodesThatLookIdle(t *testing.T) {
	simulate(t, 2, func(t *testing.T, s *fake.Slurm, l *Cache) {
		if _, known := l.Snapshot().Jobs("worker-0"); known != node.Unknown {
			t.Errorf("nobody asked, and the jobs of an idle node are known: %s", known)
		}
		l.WantJobs("somebody", "worker-0")
		after(10 * time.Second)
		if jobs, known := l.Snapshot().Jobs("worker-0"); known != node.Yes || len(jobs) != 0 {
			t.Errorf("on an idle node are %v, %s", jobs, known)
		}
		if calls := s.Counters().Calls; calls["GET jobs"] != 0 || calls["GET jobs/state"] == 0 {
			t.Errorf("without a suspended job the states of jobs are enough, but there were %v", calls)
		}
		asked := s.Counters().Calls["GET jobs/state"]
		after(time.Minute)
		if again := s.Counters().Calls["GET jobs/state"]; again != asked {
			t.Errorf("nothing has changed, and jobs were asked for %d times more", again-asked)
		}

		job := s.Submit(fake.Job{NodeList: []string{"worker-0"}})
		after(5 * time.Second)
		s.Suspend(job)
		after(10 * time.Second)
		if state := l.Snapshot().State("worker-0"); state.Busy() != node.No {
			t.Fatalf("the node is %s, and not idle", state)
		}
		if jobs, known := l.Snapshot().Jobs("worker-0"); known != node.Yes || len(jobs) != 1 || jobs[0].ID != job {
			t.Errorf("on a node with a suspended job are %v, %s", jobs, known)
		}
		s.Cancel(job)
		after(10 * time.Minute)
		if jobs, known := l.Snapshot().Jobs("worker-0"); known != node.Yes || len(jobs) != 0 {
			t.Errorf("when it was cancelled there are %v, %s", jobs, known)
		}
	})
}

// A worker that is about to end waits for the next answer, and not until the slow ones before it have been paid for.
func TestASlowAnswerAboutJobsHoldsNoWorkerForMinutes(t *testing.T) {
	simulate(t, 2, func(t *testing.T, s *fake.Slurm, l *Cache) {
		s.SetFault(func(r *http.Request) *fake.Fault {
			if strings.Contains(r.URL.Path, "/jobs/") {
				return &fake.Fault{Latency: 2 * time.Second}
			}
			return nil
		})
		s.Submit(fake.Job{NodeList: []string{"worker-0"}, Duration: 30 * time.Second})
		l.WantJobs("somebody", "worker-0", "worker-1")
		after(25 * time.Second) // a whole list has been asked for
		if s.Counters().Calls["GET jobs"] == 0 {
			t.Fatal("jobs were not listed")
		}
		for range 3 { // a stream of jobs shows the node anew each time
			s.Submit(fake.Job{NodeList: []string{"worker-1"}, Duration: time.Second})
			after(20 * time.Second)
			if state, _ := s.Node("worker-1"); slices.Contains(state.State, "ALLOCATED") {
				t.Fatalf("the node is %s", state.State)
			}
			if jobs, known := l.Snapshot().Jobs("worker-1"); known != node.Yes || len(jobs) != 0 {
				t.Errorf("20 s later, on the idle node are %v, %s", jobs, known)
			}
		}
	})
}

// What others have asked is paid for sooner until the waiting caller has the jobs, not for a minute only.
func TestWhoWaitsForJobsIsAnsweredAfterWhatOthersAsked(t *testing.T) {
	simulate(t, 1, func(t *testing.T, s *fake.Slurm, l *Cache) {
		job := s.Submit(fake.Job{NodeList: []string{"worker-0"}})
		s.Suspend(job)
		after(5 * time.Second)
		l.jobs.load.take(time.Now(), aboutJobs, 8*time.Second)
		l.WantJobs("somebody", "worker-0")
		after(3 * time.Minute)
		if jobs, known := l.Snapshot().Jobs("worker-0"); known != node.Yes || len(jobs) != 1 {
			t.Errorf("the jobs are %v, %s", jobs, known)
		}
	})
}

// Slurm deletes the record of a node below a suspended job, and fails the job.
func TestNoRecordIsDeletedBelowASuspendedJob(t *testing.T) {
	simulate(t, 2, func(t *testing.T, s *fake.Slurm, l *Cache) {
		job := s.Submit(fake.Job{NodeList: []string{"worker-0"}})
		s.Suspend(job)
		after(5 * time.Second)
		failures := l.Forget(t.Context(), []string{"worker-0", "worker-1"})
		if len(failures) != 1 || !errors.Is(failures["worker-0"], rest.Refused) {
			t.Errorf("failures are %v", failures)
		}
		if _, there := s.Node("worker-0"); !there {
			t.Error("the record is gone below the job")
		}
		if _, there := s.Node("worker-1"); there {
			t.Error("the record of the other node is there")
		}
	})
}
