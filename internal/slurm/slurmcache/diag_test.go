// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// A slow slurmrestd is asked about slurmctld within a limit of its own, which takes nothing from the limit of jobs.
func TestASlowDiagKeepsNoJobsFromBeingRead(t *testing.T) {
	simulate(t, 1, func(t *testing.T, s *fake.Slurm, l *Cache) {
		s.Submit(fake.Job{NodeList: []string{"worker-0"}})
		s.SetFault(func(r *http.Request) *fake.Fault {
			if strings.HasSuffix(r.URL.Path, "/diag/") {
				return &fake.Fault{Latency: 100 * time.Millisecond}
			}
			return nil
		})
		var oldest time.Duration
		for range 120 {
			if _, _, err := l.CollectDiag(t.Context()); err != nil {
				t.Fatal(err)
			}
			got, err := l.CollectJobs(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			oldest = max(oldest, time.Since(got.Taken))
			after(2 * time.Second)
		}
		if oldest > 0 {
			t.Errorf("jobs were %s old", oldest)
		}
		if n := s.Counters().Calls["GET diag"] - int(4*time.Minute/clockInterval); n < 5 || n > 12 { // the nodes ask for it too
			t.Errorf("diag was asked for %d times in four minutes", n)
		}
		if diag, taken, err := l.CollectDiag(t.Context()); err != nil || diag.JobsRunning != 1 || time.Since(taken) > 55*time.Second {
			t.Errorf("%d jobs run, asked for at %s, %v", diag.JobsRunning, taken, err)
		}
	})
}

func TestADiagOfAnotherSlurmrestdIsNotShown(t *testing.T) {
	simulate(t, 1, func(t *testing.T, s *fake.Slurm, l *Cache) {
		if _, taken, err := l.CollectDiag(t.Context()); err != nil || taken.IsZero() {
			t.Fatalf("asked for at %s, %v", taken, err)
		}
		if err := l.Set(Config{Endpoint: "http://other:6820", Issuer: signed(t, hmacKey)}); err != nil {
			t.Fatal(err)
		}
		s.Stop()
		if diag, taken, err := l.CollectDiag(t.Context()); err == nil || !taken.IsZero() || !diag.Since.IsZero() {
			t.Errorf("%v, asked for at %s, %v", diag, taken, err)
		}
	})
}
