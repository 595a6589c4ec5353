// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/slurm/fake"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

func TestConfirmSeesWhatJustHappened(t *testing.T) {
	simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Link) {
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

// A list that lacked a node by mistake stands for as long as nothing changes: Slurm says that nothing did.
func TestThatANodeIsAbsentIsToldByAList(t *testing.T) {
	for name, look := range map[string]func(t *testing.T, l *Link) *Snapshot{
		"which Confirm asks for": func(t *testing.T, l *Link) *Snapshot {
			t.Helper()
			snapshot, err := l.Confirm(t.Context(), "worker-0", "late")
			if err != nil {
				t.Fatal(err)
			}
			return snapshot
		},
		"and Relist": func(_ *testing.T, l *Link) *Snapshot {
			l.Relist()
			after(1100 * time.Millisecond)
			return l.Snapshot()
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Link) {
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
			simulate(t, test.nodes, func(t *testing.T, s *fake.Slurm, l *Link) {
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
	simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Link) {
		after(10 * time.Second)
		s.SetFault(func(*http.Request) *fake.Fault { return &fake.Fault{Latency: time.Second} })
		s.ResetCounters()
		hasty, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
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
			simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Link) {
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

func TestUpdatesOfEveryKind(t *testing.T) {
	simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Link) {
		both := []string{"worker-0", "worker-1"}
		if err := l.Update(t.Context(), both, Update{}).Err(); err != nil {
			t.Error(err)
		}
		if err := l.Update(t.Context(), both, Update{Reason: new(" ")}).Err(); err == nil {
			t.Error("a reason can be removed")
		}
		s.ResetCounters()
		var wg sync.WaitGroup
		for _, name := range both {
			wg.Go(func() {
				err := l.Update(t.Context(), []string{name}, Update{
					Comment: new("c"), Extra: new("e"), Topology: new("default:leaf1"), Features: []string{"a", "b"}, FeaturesActive: []string{"a"},
				}).Err()
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if calls := s.Counters().Calls["POST nodes"]; calls != 1 {
			t.Errorf("two equal updates took %d calls", calls)
		}
		snapshot, err := l.Confirm(t.Context(), both...)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range both {
			n, _ := snapshot.Node(name)
			got := fmt.Sprint(n.Comment, n.Extra, n.Topology, n.Features, n.ActiveFeatures)
			if want := "cedefault:leaf1[a b] [a]"; got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
		if err := l.Update(t.Context(), both, Update{Features: []string{}}).Err(); !errors.Is(err, rest.Refused) {
			t.Errorf("active features can be made unavailable: %v", err)
		}
		if err := l.Update(t.Context(), both, Update{Features: []string{}, FeaturesActive: []string{}}).Err(); err != nil {
			t.Error(err)
		}
		if snapshot, err = l.Confirm(t.Context(), both...); err != nil {
			t.Fatal(err)
		}
		if n, _ := snapshot.Node("worker-0"); n.Features != nil || n.Comment != "c" {
			t.Errorf("features are %v, comment is %s", n.Features, n.Comment)
		}
	})
}

func TestAReservedNodeKeepsNoOtherFromBeingDeleted(t *testing.T) {
	simulate(t, 4, func(t *testing.T, s *fake.Slurm, l *Link) {
		after(10 * time.Second)
		if err := l.PutReservation(t.Context(), rest.Reservation{Name: "r", Start: time.Now(), End: time.Now().Add(time.Hour), Nodes: "worker-[1,3]", Flags: []string{"MAINT"}, Users: []string{"slurm"}}); err != nil {
			t.Fatal(err)
		}
		after(2 * time.Second)
		failures := l.Forget(t.Context(), []string{"worker-0", "worker-1", "worker-2", "worker-3"})
		for _, name := range []string{"worker-1", "worker-3"} {
			if err := failures[name]; len(failures) != 2 || !errors.Is(err, rest.Refused) || errors.Is(err, rest.Unavailable) {
				t.Errorf("failures are %v", failures)
			}
		}
		if got := s.Names(); !slices.Equal(got, []string{"worker-1", "worker-3"}) {
			t.Errorf("Slurm has %v", got)
		}
		after(time.Hour)
		if err := l.Forget(t.Context(), []string{"worker-1", "worker-3"}).Err(); err != nil {
			t.Error(err)
		}
	})
}

func TestForgottenNodesAreGone(t *testing.T) {
	simulate(t, 2000, func(t *testing.T, s *fake.Slurm, l *Link) {
		s.Submit(fake.Job{NodeList: []string{"worker-7"}})
		after(10 * time.Second)
		s.ResetCounters()
		names := []string{"worker-7", "nobody"}
		for i := 10; i < 1500; i++ {
			names = append(names, fmt.Sprintf("worker-%d", i))
		}
		failures := l.Forget(t.Context(), names)
		if len(failures) != 1 || !errors.Is(failures["worker-7"], rest.Refused) {
			t.Errorf("failures are %v", failures.Err())
		}
		if calls := s.Counters().Calls["DELETE node"]; calls > 4 {
			t.Errorf("it took %d calls", calls)
		}
		snapshot, err := l.Confirm(t.Context(), names...)
		if err != nil || snapshot.Len() != 2000-1490 {
			t.Errorf("%d nodes are left, %v", snapshot.Len(), err)
		}
		if failures := l.Forget(t.Context(), []string{"nobody"}); failures != nil {
			t.Errorf("forgetting nobody: %v", failures.Err())
		}
	})
}

func TestJobsAreAskedForWhileWanted(t *testing.T) {
	simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Link) {
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
		changes := l.Subscribe()
		defer changes.Close()
		l.WantJobs("set", "worker-1", "worker-2")
		after(time.Second)
		if got := taken(changes); got != "main:worker-1 main:worker-2" {
			t.Errorf("changed: %s", got)
		}
		jobs, known := l.Snapshot().Jobs("worker-1")
		want := []JobOnNode{{second, "alice", begin.Add(time.Hour), "2"}, {first, "bob", time.Time{}, "1"}}
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

// Of nodes that drain only the states of jobs are asked for, once these are known.
func TestJobsOfDrainingNodesAreListedOnce(t *testing.T) {
	simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Link) {
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

func TestBudgetOfDestructiveActions(t *testing.T) {
	simulate(t, 60, func(t *testing.T, _ *fake.Slurm, l *Link) {
		begin := time.Now()
		changes := l.Subscribe()
		defer changes.Close()
		for _, step := range []struct {
			after   time.Duration
			n       int
			granted int
			again   time.Duration
		}{
			{0, 10, 10, 0},
			{10 * time.Second, 15, 15, 0},
			{20 * time.Second, 10, 5, 60 * time.Second},
			{30 * time.Second, 1, 0, 60 * time.Second},
			{60 * time.Second, 11, 10, 70 * time.Second},
			{10 * time.Minute, 30, 30, 0},
		} {
			now := begin.Add(step.after)
			granted, again := l.Spend(now, step.n)
			want := time.Time{}
			if step.again > 0 {
				want = begin.Add(step.again)
			}
			if granted != step.granted || !again.Equal(want) {
				t.Errorf("after %s %d are granted, again at %s; want %d, %s", step.after, granted, again.Sub(begin), step.granted, step.again)
			}
			if b := l.Budget(now); b.Until != want || b.Limit != 30 {
				t.Errorf("after %s the budget is %+v", step.after, b)
			}
		}
		if got := taken(changes); got != "main:" {
			t.Errorf("changed: %s", got)
		}
	})
}

func TestABrokenConnectionIsNotTheLossOfSlurm(t *testing.T) {
	simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Link) {
		after(20 * time.Second)
		changes := l.Subscribe()
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

func TestJobsThatAreNotToldAnyMoreAreUnknown(t *testing.T) {
	simulate(t, 2, func(t *testing.T, s *fake.Slurm, l *Link) {
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

// Whoever has the turn and waits keeps others from asking, and nothing has failed. Whoever looked meanwhile has to look again.
func TestTheEndOfASilenceIsTold(t *testing.T) {
	simulate(t, 1, func(t *testing.T, _ *fake.Slurm, l *Link) {
		after(10 * time.Second)
		changes := l.Subscribe()
		defer changes.Close()
		release, err := l.turn(t.Context())
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
