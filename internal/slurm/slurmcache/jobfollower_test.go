// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

func TestJobsAreAskedForWhileWanted(t *testing.T) {
	simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Cache) {
		begin := time.Now().Truncate(time.Second)
		first := s.Submit(fake.Job{NodeList: []string{"worker-0", "worker-1"}, CPUs: 1, User: "bob"})
		second := s.Submit(fake.Job{NodeList: []string{"worker-1"}, CPUs: 1, Limit: time.Hour})
		after(10 * time.Second)
		if calls := s.Counters().Calls["GET jobs"]; calls != 0 {
			t.Errorf("jobs were asked for %d times, for nobody", calls)
		}
		if _, known := l.Snapshot().Jobs("worker-0"); known != node.Unknown {
			t.Errorf("jobs nobody asked for are known: %s", known)
		}
		changes := l.hub.subscribe()
		defer changes.Close()
		l.WantJobs("set", "worker-1", "worker-2")
		after(time.Second)
		if got := taken(changes); got != "main:worker-1 main:worker-2" {
			t.Errorf("changed: %s", got)
		}
		jobs, known := l.Snapshot().Jobs("worker-1")
		want := []JobOnNode{{ID: second, User: "alice", End: begin.Add(time.Hour)}, {ID: first, User: "bob"}}
		if diff := cmp.Diff(want, jobs); diff != "" || known != node.Yes {
			t.Errorf("jobs are %s (-want +got):\n%s", known, diff)
		}
		if end, known := l.Snapshot().LastEnd("worker-1"); !end.IsZero() || known != node.Yes {
			t.Errorf("the last end is %s, %s", end, known)
		}
		if jobs, known := l.Snapshot().Jobs("worker-2"); len(jobs) != 0 || known != node.Yes {
			t.Errorf("an idle node has %v, %s", jobs, known)
		}
		if _, known := l.Snapshot().Jobs("worker-0"); known != node.Unknown {
			t.Errorf("jobs of a node that nobody asked for are known: %s", known)
		}
		s.Finish(first)
		after(2 * time.Second)
		if end, known := l.Snapshot().LastEnd("worker-1"); !end.Equal(begin.Add(time.Hour)) || known != node.Yes {
			t.Errorf("the last end is %s, %s", end, known)
		}
		l.WantJobs("set")
		after(2 * time.Second)
		s.ResetCounters()
		after(time.Minute)
		if calls := s.Counters().Calls["GET jobs"]; calls != 0 {
			t.Errorf("jobs were asked for %d times, for nobody", calls)
		}
	})
}

// The list shows that a job is COMPLETING when its node drains; if it is so later, its state does.
func TestItIsKnownWhichJobsAreCompleting(t *testing.T) {
	for name, early := range map[string]bool{"the list of jobs shows that a job is COMPLETING": true, "the state of a job shows that it is COMPLETING": false} {
		t.Run(name, func(t *testing.T) {
			start := func() *fake.Slurm {
				s := fake.New(fake.Options{Key: hmacKey, Completing: time.Hour})
				s.Register(fake.Node{Name: "worker-0"})
				return s
			}
			simulateSlurm(t, start, func(t *testing.T, s *fake.Slurm, l *Cache) {
				job := s.Submit(fake.Job{NodeList: []string{"worker-0"}, CPUs: 1, Limit: 2 * time.Hour})
				if early {
					s.Finish(job)
				}
				if err := l.Drain(t.Context(), []string{"worker-0"}, "slurm-operator: test").Err(); err != nil {
					t.Fatal(err)
				}
				l.WantJobs("set", "worker-0")
				after(10 * time.Second)
				if jobs, known := l.Snapshot().Jobs("worker-0"); known != node.Yes || len(jobs) != 1 || jobs[0].Completing != early {
					t.Errorf("jobs are %+v, %s", jobs, known)
				}
				s.ResetCounters()
				if !early {
					s.Finish(job)
				}
				after(time.Minute)
				if jobs, known := l.Snapshot().Jobs("worker-0"); known != node.Yes || len(jobs) != 1 || !jobs[0].Completing {
					t.Errorf("a minute later jobs are %+v, %s", jobs, known)
				}
			})
		})
	}
}

// Of nodes that drain only the states of jobs are asked for, once these are known.
func TestJobsOfDrainingNodesAreListedOnce(t *testing.T) {
	simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Cache) {
		first := s.Submit(fake.Job{NodeList: []string{"worker-0", "worker-1"}, CPUs: 1, Limit: 2 * time.Hour})
		second := s.Submit(fake.Job{NodeList: []string{"worker-1"}, CPUs: 1, Limit: time.Hour})
		l.WantJobs("set", "worker-1")
		if err := l.Drain(t.Context(), []string{"worker-1"}, "slurm-operator: test").Err(); err != nil {
			t.Fatal(err)
		}
		after(5 * time.Second)
		s.ResetCounters()
		expect := func(ids ...int64) {
			t.Helper()
			var got []int64
			jobs, known := l.Snapshot().Jobs("worker-1")
			for _, j := range jobs {
				got = append(got, j.ID)
			}
			if !slices.Equal(got, ids) || known != node.Yes {
				t.Errorf("jobs are %s %v, want %v", known, got, ids)
			}
		}
		expect(second, first)
		s.Finish(first)
		s.Submit(fake.Job{NodeList: []string{"worker-2"}, CPUs: 1})
		after(5 * time.Second)
		expect(second)
		if calls := s.Counters().Calls; calls["GET jobs"] > 0 || calls["GET jobs/state"] == 0 {
			t.Errorf("it took %v", calls)
		}
		after(6 * time.Minute)
		if calls := s.Counters().Calls; calls["GET jobs"] > 2 {
			t.Errorf("in six minutes it took %v", calls)
		}
		s.Finish(second)
		after(5 * time.Second)
		expect()
	})
}

func TestJobsThatAreNotToldAnyMoreAreUnknown(t *testing.T) {
	simulate(t, 2, func(t *testing.T, s *fake.Slurm, l *Cache) {
		s.Submit(fake.Job{NodeList: []string{"worker-0"}})
		l.WantJobs("set", "worker-0", "worker-1")
		after(5 * time.Second)
		if jobs, known := l.Snapshot().Jobs("worker-0"); known != node.Yes || len(jobs) != 1 {
			t.Fatalf("jobs are %v, %s", jobs, known)
		}
		s.SetFault(func(r *http.Request) *fake.Fault {
			if strings.Contains(r.URL.Path, "jobs") {
				return &fake.Fault{Status: 500}
			}
			return nil
		})
		after(30 * time.Second)
		if _, known := l.Snapshot().Jobs("worker-0"); known != node.Yes {
			t.Errorf("after half a minute they are %s", known)
		}
		after(2 * time.Minute)
		if _, known := l.Snapshot().Jobs("worker-0"); known != node.Unknown || l.Snapshot().Trust != Fresh {
			t.Errorf("after minutes they are %s", known)
		}
		s.SetFault(nil)
		after(time.Minute)
		if _, known := l.Snapshot().Jobs("worker-0"); known != node.Yes {
			t.Errorf("afterwards they are %s", known)
		}
	})
}

// A job that started after jobs were listed makes them unknown, rather than none.
func TestABusyNodeWithoutKnownJobsIsUnknown(t *testing.T) {
	busy := NewSnapshot(time.Unix(0, 0), Fresh, rest.Node{Name: "a", State: []string{"ALLOCATED"}}, rest.Node{Name: "b", State: []string{"IDLE"}})
	s := busy.WithJobs(map[string][]JobOnNode{"a": nil, "b": {{ID: 1}}})
	if _, known := s.Jobs("a"); known != node.Unknown {
		t.Errorf("jobs of a busy node of which none is known are %s", known)
	}
	if jobs, known := s.Jobs("b"); known != node.Yes || len(jobs) != 1 {
		t.Errorf("jobs of a node that looks idle are %v, %s; one is suspended there", jobs, known)
	}
}
