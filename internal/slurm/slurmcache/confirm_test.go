// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

func TestConfirmSeesWhatJustHappened(t *testing.T) {
	simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Cache) {
		after(10 * time.Second)
		s.Submit(fake.Job{NodeList: []string{"worker-1"}})
		if busy := l.Snapshot().State("worker-1").Busy(); busy != node.No {
			t.Fatalf("the test is in vain: busy is %s", busy)
		}
		snapshot, err := l.Confirm(t.Context(), "worker-1")
		if err != nil || snapshot.State("worker-1").Busy() != node.Yes {
			t.Errorf("confirmed as %v, %v", snapshot.State("worker-1"), err)
		}
	})
}

// A list that lacked a node by mistake stands for as long as nothing changes: Slurm answers that nothing did.
func TestThatANodeIsAbsentIsToldByAList(t *testing.T) {
	for name, look := range map[string]func(t *testing.T, l *Cache) *Snapshot{
		"Confirm asks for a list": func(t *testing.T, l *Cache) *Snapshot {
			t.Helper()
			snapshot, err := l.Confirm(t.Context(), "worker-0", "late")
			if err != nil {
				t.Fatal(err)
			}
			return snapshot
		},
		"Relist asks for a list": func(_ *testing.T, l *Cache) *Snapshot {
			l.Relist()
			after(1100 * time.Millisecond)
			return l.Snapshot()
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Cache) {
				after(10 * time.Second)
				s.SetFault(func(*http.Request) *fake.Fault {
					return &fake.Fault{KeepNode: func(name string) bool { return name != "late" }}
				})
				s.Register(fake.Node{Name: "late"})
				after(10 * time.Second)
				s.SetFault(nil)
				after(time.Minute)
				before := l.Snapshot()
				if _, exists := before.Node("late"); exists != node.No || before.Trust != Fresh || time.Since(before.Listed) < time.Minute {
					t.Fatalf("the test is in vain: %s, %s, listed %s ago", exists, before.Trust, time.Since(before.Listed))
				}
				called := time.Now()
				if s := look(t, l); s.Listed.Before(called) || !s.has([]string{"late"}) {
					t.Errorf("listed %s before, %s", called.Sub(s.Listed), states(s))
				}
				s.ResetCounters()
				after(10 * time.Second)
				if c := s.Counters(); c.Unchanged < c.Calls["GET nodes"] {
					t.Errorf("and then %d of %d answers were lists", c.Calls["GET nodes"]-c.Unchanged, c.Calls["GET nodes"])
				}
			})
		})
	}
}

func TestConfirmationsShareOneQuestion(t *testing.T) {
	for name, test := range map[string]struct {
		nodes int
		ask   string
	}{
		"about nodes that Slurm has":           {100, "worker"},
		"about absent nodes they share a list": {3, "absent"},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, test.nodes, func(t *testing.T, s *fake.Slurm, l *Cache) {
				after(10 * time.Second)
				s.SetFault(func(*http.Request) *fake.Fault { return &fake.Fault{Latency: 200 * time.Millisecond} })
				s.ResetCounters()
				var wg sync.WaitGroup
				for i := range 100 {
					wg.Go(func() {
						if _, err := l.Confirm(t.Context(), fmt.Sprintf("%s-%d", test.ask, i)); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if calls := s.Counters().Calls["GET nodes"]; calls > 2 {
					t.Errorf("a hundred confirmations took %d questions", calls)
				}
			})
		})
	}
}

func TestACallerWhoGivesUpLeavesTheAnswerToTheOthers(t *testing.T) {
	simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Cache) {
		after(10 * time.Second)
		var asked atomic.Int32
		s.SetFault(func(r *http.Request) *fake.Fault {
			if strings.HasSuffix(r.URL.Path, "/nodes/") {
				asked.Add(1)
			}
			return &fake.Fault{Latency: time.Second}
		})
		s.ResetCounters()
		hasty, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond) // the one before has two answers, of a second each
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() { // all others come while it is asked for this one
			if _, err := l.Confirm(t.Context(), "worker-0"); err != nil {
				t.Error(err)
			}
		})
		after(10 * time.Millisecond)
		wg.Go(func() {
			if _, err := l.Confirm(hasty, "worker-0"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("who gave up has %v", err)
			}
			if n := asked.Load(); n != 2 {
				t.Errorf("the test is in vain: who gave up did so when %d questions were sent", n)
			}
		})
		after(10 * time.Millisecond)
		for i := range 50 {
			wg.Go(func() {
				if _, err := l.Confirm(t.Context(), fmt.Sprintf("worker-%d", i%3)); err != nil {
					t.Errorf("who waited has %v", err)
				}
			})
		}
		wg.Wait()
		if calls := s.Counters().Calls["GET nodes"]; calls > 4 {
			t.Errorf("it took %d questions", calls)
		}
	})
}

func TestConfirmFailsWhenSlurmDoesNotSay(t *testing.T) {
	for name, fail := range map[string]func(*fake.Slurm){
		"slurmctld is down":       (*fake.Slurm).Stop,
		"connections break":       faulty(fake.Fault{Cut: true}),
		"the list is empty":       quietly(fake.Fault{KeepNode: func(string) bool { return false }}),
		"somebody else answers":   faulty(fake.Fault{Status: 200, Body: "<html>"}),
		"slurmrestd sends errors": faulty(fake.Fault{Error: &fake.Error{Number: 9, Text: "x"}}),
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Cache) {
				fail(s)
				if _, err := l.Confirm(t.Context(), "worker-1"); err == nil || !strings.Contains(err.Error(), "worker-1") {
					t.Errorf("confirmed: %v", err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if _, err := l.Confirm(ctx, "worker-1"); !errors.Is(err, context.Canceled) {
					t.Errorf("a caller that left has %v", err)
				}
			})
		})
	}
}
