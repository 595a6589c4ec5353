// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

func TestSnapshotFollowsSlurm(t *testing.T) {
	simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Cache) {
		if got := l.Snapshot(); got.Trust != Fresh || states(got) != "worker-0=IDLE worker-1=IDLE worker-2=IDLE" || got.Meta.Release != "26.05.5" {
			t.Fatalf("at first: %s %s %+v", got.Trust, states(got), got.Meta)
		}
		changes := l.hub.subscribe()
		defer changes.Close()
		after(5 * time.Second)
		if got := taken(changes); got != "" {
			t.Errorf("nothing happened, but %s changed", got)
		}
		job := s.Submit(fake.Job{NodeList: []string{"worker-1"}})
		if err := s.Delete("worker-2"); err != nil {
			t.Fatal(err)
		}
		after(2100 * time.Millisecond)
		<-changes.Ready()
		if got := taken(changes); got != "main:worker-1 main:worker-2" {
			t.Errorf("changed: %s", got)
		}
		if got := states(l.Snapshot()); got != "worker-0=IDLE worker-1=ALLOCATED" {
			t.Errorf("now: %s", got)
		}
		if _, exists := l.Snapshot().Node("worker-2"); exists != node.No {
			t.Errorf("a deleted node exists: %s", exists)
		}
		if busy := l.Snapshot().State("worker-1").Busy(); busy != node.Yes {
			t.Errorf("an allocated node is busy: %s", busy)
		}
		s.Finish(job)
		after(2100 * time.Millisecond)
		s.Register(fake.Node{Name: "worker-2"})
		after(2100 * time.Millisecond)
		if got := taken(changes); got != "main:worker-1 main:worker-2" {
			t.Errorf("changed while nobody looked: %s", got)
		}
	})
}

func TestAtRestOnlyUnchangedIsSentAndTheTime(t *testing.T) {
	simulate(t, 500, func(t *testing.T, s *fake.Slurm, _ *Cache) {
		after(10 * time.Second)
		s.ResetCounters()
		after(10 * time.Minute)
		c := s.Counters()
		if c.Calls["GET nodes"] > 600 || c.Calls["GET nodes"] < 590 || c.Unchanged != c.Calls["GET nodes"] || c.Calls["GET diag"] > 20 || c.Sent > 20<<10 {
			t.Errorf("ten minutes cost %+v", c)
		}
	})
}

func TestQuestionsOfAllKindsTakeATwentiethOfTheTime(t *testing.T) {
	simulate(t, 10, func(t *testing.T, s *fake.Slurm, l *Cache) {
		const cost = 1200 * time.Millisecond
		s.SetFault(func(*http.Request) *fake.Fault {
			s.Register(fake.Node{Name: "restless"})
			s.Submit(fake.Job{NodeList: []string{"worker-1"}, CPUs: 1, Limit: 2 * time.Second})
			return &fake.Fault{Latency: cost}
		})
		l.WantJobs("somebody", "worker-1")
		l.Attend(Interest{Settled: func(Daemons) bool { return false }, Watch: true})
		for minute := range 120 {
			if minute == 60 { // what each answer costs is known
				s.ResetCounters()
			}
			after(time.Minute)
			l.Attend(Interest{Settled: func(Daemons) bool { return false }, Watch: true})
		}
		var busy time.Duration
		calls := s.Counters().Calls
		for _, n := range calls {
			busy += time.Duration(n) * cost
		}
		if busy > time.Hour/20 || busy < time.Hour/30 {
			t.Errorf("in an hour slurmrestd was busy for %s: %v", busy, calls)
		}
		// None of the three goes hungry.
		for call, least := range map[string]time.Duration{"GET nodes": time.Hour / 38, "GET jobs": time.Hour / 150, "GET conf": time.Hour / 500} {
			if time.Duration(calls[call])*cost < least {
				t.Errorf("%s was asked %d times in an hour: %v", call, calls[call], calls)
			}
		}
	})
}

func TestFailuresShowAsTrust(t *testing.T) {
	tests := map[string]struct {
		fail  func(*fake.Slurm)
		trust Trust
		heal  func(*fake.Slurm)
	}{
		"slurmctld is down":           {(*fake.Slurm).Stop, Stale, func(s *fake.Slurm) { s.Start(true) }},
		"slurmrestd answers 500":      {faulty(fake.Fault{Status: 500}), Stale, healthy},
		"connections break":           {faulty(fake.Fault{Cut: true}), Stale, healthy},
		"slurmrestd is silent":        {faulty(fake.Fault{Hold: nil, Latency: time.Hour}), Stale, healthy},
		"slurmrestd sends errors":     {faulty(fake.Fault{Error: &fake.Error{Number: 9, Text: "x"}}), Suspect, healthy},
		"somebody else answers":       {faulty(fake.Fault{Status: 200, Body: "<html>"}), Suspect, healthy},
		"the list is empty":           {quietly(fake.Fault{KeepNode: func(string) bool { return false }}), Suspect, healthyAgain},
		"most of the list is missing": {quietly(fake.Fault{KeepNode: func(n string) bool { return n == "worker-0" }}), Suspect, healthyAgain},
		"the key was rotated":         {func(s *fake.Slurm) { s.SetKey([]byte("another")) }, Stale, func(s *fake.Slurm) { s.SetKey(hmacKey) }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			simulate(t, 4, func(t *testing.T, s *fake.Slurm, l *Cache) {
				after(10 * time.Second)
				changes := l.hub.subscribe()
				defer changes.Close()
				test.fail(s)
				after(100 * time.Second)
				got := l.Snapshot()
				if got.Trust != test.trust || got.Why == "" {
					t.Errorf("it is %s because %q, want %s", got.Trust, got.Why, test.trust)
				}
				if _, exists := got.Node("nobody"); exists != node.Unknown {
					t.Errorf("a node that was never there exists: %s", exists)
				}
				if drained := got.State("worker-0").Drained(); drained != node.Unknown {
					t.Errorf("a node is drained: %s", drained)
				}
				if text := taken(changes); !strings.HasPrefix(text, "main:") {
					t.Errorf("the loss of trust was not told: %q", text)
				}
				test.heal(s)
				after(100 * time.Second)
				if got := l.Snapshot(); got.Trust != Fresh || got.Len() != 4 {
					t.Errorf("afterwards it is %s with %d nodes, because %q", got.Trust, got.Len(), got.Why)
				}
			})
		})
	}
}

func TestLostStateIsSuspectUntilItSettles(t *testing.T) {
	simulate(t, 10, func(t *testing.T, s *fake.Slurm, l *Cache) {
		s.Stop()
		after(10 * time.Second)
		s.Start(false)
		after(20 * time.Second)
		if got := l.Snapshot(); got.Trust != Suspect || got.Len() != 0 {
			t.Errorf("after a restart without state it is %s with %d nodes", got.Trust, got.Len())
		}
		for i := range 6 {
			s.Register(fake.Node{Name: fmt.Sprintf("worker-%d", i)})
		}
		after(5 * time.Second)
		if got := l.Snapshot(); got.Trust != Fresh || got.Len() != 6 {
			t.Errorf("when most came back it is %s with %d nodes", got.Trust, got.Len())
		}
		s.Start(false)
		after(suspectTimeout + 20*time.Second)
		if got := l.Snapshot(); got.Trust != Fresh || got.Len() != 0 {
			t.Errorf("when nobody came back it is %s with %d nodes", got.Trust, got.Len())
		}
	})
}

func TestABrokenConnectionIsNotTheLossOfSlurm(t *testing.T) {
	simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Cache) {
		after(20 * time.Second)
		changes := l.hub.subscribe()
		defer changes.Close()
		broken := false
		s.SetFault(func(r *http.Request) *fake.Fault {
			if r.Method != http.MethodGet || broken {
				return nil
			}
			broken = true
			return &fake.Fault{Cut: true}
		})
		after(5 * time.Second)
		if got := taken(changes); !broken || got != "" || l.Snapshot().Trust != Fresh {
			t.Errorf("one broken connection was told as %q", got)
		}
		s.SetFault(func(*http.Request) *fake.Fault { return &fake.Fault{Cut: true} })
		s.ResetCounters()
		after(2 * time.Minute)
		if calls := s.Counters().Calls["GET nodes"]; calls > 30 || l.Snapshot().Trust != Stale {
			t.Errorf("two minutes without connections saw %d questions, and it is %s", calls, l.Snapshot().Trust)
		}
	})
}

// A goroutine that has the turn and waits keeps others from asking, and nothing has failed. Those that looked meanwhile have to look again.
func TestTheEndOfASilenceIsTold(t *testing.T) {
	simulate(t, 1, func(t *testing.T, _ *fake.Slurm, l *Cache) {
		after(10 * time.Second)
		changes := l.hub.subscribe()
		defer changes.Close()
		release, err := l.nodes.takeTurn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		after(25 * time.Second)
		if got := l.Snapshot(); got.Trust != Stale {
			t.Fatalf("after a silence it is %s", got.Trust)
		}
		taken(changes)
		release()
		after(2 * time.Second)
		if got := taken(changes); l.Snapshot().Trust != Fresh || got != "main:" {
			t.Errorf("it is %s, and what changed is %q", l.Snapshot().Trust, got)
		}
	})
}
