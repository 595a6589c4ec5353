// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

func TestALongListOfJobsDoesNotHoldUpTheNodes(t *testing.T) {
	simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Cache) {
		job := s.Submit(fake.Job{NodeList: []string{"worker-1"}, CPUs: 1, Limit: time.Hour})
		const long = 50 * time.Second
		s.SetFault(func(r *http.Request) *fake.Fault {
			if strings.HasSuffix(strings.TrimSuffix(r.URL.Path, "/"), "/jobs") {
				return &fake.Fault{Latency: long}
			}
			return nil
		})
		l.WantJobs("set", "worker-1")
		after(10 * time.Second)
		if err := s.Update("root", "worker-2", "DRAIN", "bad disk"); err != nil {
			t.Fatal(err)
		}
		after(1500 * time.Millisecond)
		if drains := l.Snapshot().State("worker-2").Drain(); drains != node.Yes {
			t.Errorf("while jobs are listed, it is %s that worker-2 drains", drains)
		}
		if _, known := l.Snapshot().Jobs("worker-1"); known != node.Unknown {
			t.Errorf("the jobs are known before they are told: %s", known)
		}
		after(long)
		if jobs, known := l.Snapshot().Jobs("worker-1"); known != node.Yes || len(jobs) != 1 || jobs[0].ID != job {
			t.Errorf("the jobs are %s %v", known, jobs)
		}
		if drains := l.Snapshot().State("worker-2").Drain(); drains != node.Yes {
			t.Errorf("after jobs are listed, it is %s that worker-2 drains", drains)
		}
	})
}

// slow lets slurmrestd work for a second and a half for everything about jobs and slurmctlds, as it does on a busy machine.
func slow(s *fake.Slurm) {
	s.SetFault(func(r *http.Request) *fake.Fault {
		if strings.Contains(r.URL.Path, "/jobs") || strings.Contains(r.URL.Path, "/conf") {
			return &fake.Fault{Latency: 1500 * time.Millisecond}
		}
		return nil
	})
}

func TestABusySlurmrestdTellsWithinHalfAMinuteOfTheJobsOfAnotherWorkerThatIsToGo(t *testing.T) {
	simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Cache) {
		slow(s)
		for _, name := range []string{"worker-0", "worker-1", "worker-2"} {
			s.Submit(fake.Job{NodeList: []string{name}, CPUs: 1, Limit: time.Hour})
			l.WantJobs(name, name)
			after(30 * time.Second)
			if _, known := l.Snapshot().Jobs(name); known != node.Yes {
				t.Errorf("half a minute later the jobs of %s are known: %s", name, known)
			}
		}
	})
}
