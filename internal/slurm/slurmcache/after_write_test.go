// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"net/http"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// A rolling update writes all the time, and its next step is in the next list. Nodes that change by themselves are listed no more often
// than before.
func TestWhoeverChangesNodesSeesThemSoon(t *testing.T) {
	simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Cache) {
		s.SetFault(func(r *http.Request) *fake.Fault {
			if r.Method == http.MethodGet {
				return &fake.Fault{Latency: 200 * time.Millisecond} // a thousand nodes
			}
			return nil
		})
		lists := func(seconds int, write func()) int {
			s.ResetCounters()
			for i := range seconds {
				if err := s.Update("root", "worker-0", "DRAIN", time.Duration(i).String()); err != nil {
					t.Fatal(err)
				}
				write()
				after(time.Second)
			}
			return s.Counters().Calls["GET nodes"]
		}
		lists(300, func() {}) // what was saved up is used up
		if n := lists(60, func() {}); n > 15 {
			t.Errorf("nodes that change by themselves were listed %d times in a minute", n)
		}
		n := lists(60, func() {
			l.DrainLater(t.Context(), "worker-1", "slurm-operator: a rolling update", func(err error) {
				if err != nil {
					t.Error(err)
				}
			})
		})
		if n < 45 {
			t.Errorf("while they were written to they were listed %d times in a minute", n)
		}
		lists(180, func() {}) // what was saved up meanwhile is used up
		if n := lists(60, func() {}); n > 15 {
			t.Errorf("after that they were listed %d times in a minute", n)
		}
	})
}

// Each list lets a rolling update write, and each write lets it ask for a list: without a bound it would ask all the time.
func TestListsThatFollowOneAnotherAreKeptApart(t *testing.T) {
	simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Cache) {
		after(time.Minute)
		s.ResetCounters()
		began := time.Now()
		for range 100 {
			if err := s.Update("root", "worker-0", "DRAIN", time.Now().String()); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Confirm(t.Context(), "worker-0"); err != nil {
				t.Fatal(err)
			}
		}
		took := time.Since(began)
		if most := maxListBurst + int(took/minListInterval) + 1; s.Counters().Calls["GET nodes"] > most {
			t.Errorf("%d lists in %s", s.Counters().Calls["GET nodes"], took)
		}
		if took > 100*minListInterval {
			t.Errorf("a hundred confirmations took %s", took)
		}
	})
}
