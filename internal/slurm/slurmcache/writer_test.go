// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

func TestEqualWritesLeaveAsOneCall(t *testing.T) {
	simulate(t, 1000, func(t *testing.T, s *fake.Slurm, l *Cache) {
		s.ResetCounters()
		began := time.Now()
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				name := fmt.Sprintf("worker-%d", i)
				if i%100 == 7 {
					name = fmt.Sprintf("nobody-%d", i)
				}
				failures := l.Drain(t.Context(), []string{name}, "slurm-operator: scale-in")
				if err := failures.Err(); (err != nil) != (i%100 == 7) || err != nil && !errors.Is(failures[name], rest.Absent) {
					t.Errorf("draining %s: %v", name, err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		// One call that names unknown nodes, one list to see which, one call without them, and the poll after a write.
		if c := s.Counters(); c.Calls["POST nodes"] != 2 || c.Calls["GET nodes"] > 2 {
			t.Errorf("it cost %v", c.Calls)
		}
		if w := s.Writes(); !strings.HasPrefix(w[len(w)-1].Nodes, "worker-[0-6,8-106,") || w[len(w)-1].Reason != "slurm-operator: scale-in" {
			t.Errorf("last write: %.100s", w[len(w)-1].Nodes)
		}
		after(60 * time.Millisecond)
		if n, _ := l.Snapshot().Node("worker-999"); !slices.Contains(n.State, "DRAIN") {
			t.Errorf("60 ms after the write the snapshot has %v", n.State)
		}
	})
}

func TestWritesThatKeepComingAreFewAndSoon(t *testing.T) {
	simulate(t, 1000, func(t *testing.T, s *fake.Slurm, l *Cache) {
		s.ResetCounters()
		var wg sync.WaitGroup
		drain := func(i int, limit time.Duration) {
			began := time.Now()
			if err := l.Drain(t.Context(), []string{fmt.Sprintf("worker-%d", i)}, "slurm-operator: scale-in").Err(); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > limit {
				t.Errorf("the drain of worker-%d took %s", i, took)
			}
		}
		for i := range 1000 { // within two seconds
			wg.Go(func() { drain(i, 350*time.Millisecond) })
			time.Sleep(2 * time.Millisecond)
		}
		wg.Wait()
		if calls := s.Counters().Calls["POST nodes"]; calls > 10 {
			t.Errorf("it took %d calls", calls)
		}
		after(time.Second)
		drain(7, 60*time.Millisecond) // a single one waits no longer than before
	})
}

func TestWritesThatComeInBurstsAreFewAndSoon(t *testing.T) {
	simulate(t, 1000, func(t *testing.T, s *fake.Slurm, l *Cache) {
		s.ResetCounters()
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				began := time.Now()
				if err := l.Drain(t.Context(), []string{fmt.Sprintf("worker-%d", i)}, "slurm-operator: scale-in").Err(); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took > 350*time.Millisecond {
					t.Errorf("the drain of worker-%d took %s", i, took)
				}
			})
			if i%50 == 49 {
				time.Sleep(170 * time.Millisecond) // three and a half seconds in all
			}
		}
		wg.Wait()
		if calls := s.Counters().Calls["POST nodes"]; calls > 13 {
			t.Errorf("it took %d calls", calls)
		}
	})
}

func TestWritesAboutANodeKeepTheirOrder(t *testing.T) {
	simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Cache) {
		var wg sync.WaitGroup
		write := func(write func() Failures) {
			wg.Go(func() {
				if err := write().Err(); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		s.ResetCounters()
		ctx := t.Context()
		write(func() Failures { return undrain(l, "worker-0") })
		write(func() Failures {
			return l.Drain(ctx, []string{"worker-1", "worker-2", "worker-1"}, "slurm-operator: r")
		})
		write(func() Failures { return update(l, []string{"worker-2"}, Update{Comment: new("c")}) })
		write(func() Failures { return undrain(l, "worker-1") })
		write(func() Failures { return undrain(l, "worker-2") })
		wg.Wait()
		var got []string
		for _, w := range s.Writes() {
			if w.State != "" { // comments go their own way
				got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", w.State, w.Nodes, w.Reason)))
			}
		}
		want := []string{"UNDRAIN worker-0", "DRAIN worker-[1-2] slurm-operator: r", "UNDRAIN worker-[1-2]"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
}

func TestWritesFailPerNode(t *testing.T) {
	tests := map[string]struct {
		fault *fake.Fault
		nodes []string
		want  map[string]error // nil: any error but Absent
		calls int
	}{
		"a name that is many":           {nil, []string{"worker-[0-1]", "worker-1"}, map[string]error{"worker-[0-1]": nil}, 1},
		"a name that is all":            {nil, []string{"ALL"}, map[string]error{"ALL": nil}, 0},
		"an unknown node is absent":     {nil, []string{"nobody"}, map[string]error{"nobody": rest.Absent}, 1},
		"two unknown nodes are absent":  {nil, []string{"nobody", "noone"}, map[string]error{"nobody": rest.Absent, "noone": rest.Absent}, 1},
		"no answer fails all":           {&fake.Fault{Status: 503}, []string{"worker-0", "worker-1"}, map[string]error{"worker-0": rest.Unavailable, "worker-1": rest.Unavailable}, 1},
		"a list that hides nodes":       {&fake.Fault{KeepNode: func(string) bool { return false }}, []string{"worker-0", "nobody"}, map[string]error{"worker-0": rest.Unavailable, "nobody": rest.Unavailable}, 1},
		"an unknown node does not harm": {nil, []string{"nobody", "worker-0"}, map[string]error{"nobody": rest.Absent}, 2},
		"no nodes":                      {nil, nil, map[string]error{}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			simulate(t, 4, func(t *testing.T, s *fake.Slurm, l *Cache) {
				s.ResetCounters()
				s.SetFault(func(*http.Request) *fake.Fault { return test.fault })
				failures := l.Drain(t.Context(), test.nodes, "slurm-operator: r")
				for name, err := range failures {
					want, expected := test.want[name]
					if !expected || want != nil && !errors.Is(err, want) || want == nil && errors.Is(err, rest.Absent) {
						t.Errorf("%s: %v, want %v", name, err, want)
					}
				}
				if len(failures) != len(test.want) {
					t.Errorf("failures are %v, want %v", failures, test.want)
				}
				if got := s.Counters().Calls["POST nodes"]; got != test.calls {
					t.Errorf("%d calls, want %d", got, test.calls)
				}
			})
		})
	}
}

func TestDrainNeedsAReason(t *testing.T) {
	simulate(t, 1, func(t *testing.T, s *fake.Slurm, l *Cache) {
		if failures := l.Drain(t.Context(), []string{"worker-0"}, " "); len(failures) != 1 || len(s.Writes()) != 0 {
			t.Errorf("failures are %v after %d writes", failures, len(s.Writes()))
		}
	})
}

func TestWhoMayBeResumed(t *testing.T) {
	simulate(t, 4, func(t *testing.T, s *fake.Slurm, l *Cache) {
		for name, reason := range map[string]string{"worker-0": "slurm-operator: r", "worker-1": "bad disk"} {
			if err := s.Update("root", name, "DRAIN", reason); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Update("root", "worker-2", "POWER_DOWN", ""); err != nil {
			t.Fatal(err)
		}
		if err := s.Update("root", "worker-2", "POWER_UP", ""); err != nil {
			t.Fatal(err)
		}
		s.Late("worker-2")
		failures := l.Resume(t.Context(), []string{"worker-0", "worker-1", "worker-2"})
		if len(failures) != 1 || !errors.Is(failures["worker-1"], ErrHeld) {
			t.Errorf("failures are %v", failures)
		}
		for name, want := range map[string]string{
			"worker-0": "IDLE+DYNAMIC_NORM", "worker-1": "IDLE+DRAIN+DYNAMIC_NORM", "worker-2": "IDLE+POWERED_DOWN+DYNAMIC_NORM",
		} {
			if n, _ := s.Node(name); strings.Join(n.State, "+") != want {
				t.Errorf("%s is %v, want %s", name, n.State, want)
			}
		}
	})
}

func TestCallersMayLeave(t *testing.T) {
	simulate(t, 2, func(t *testing.T, s *fake.Slurm, l *Cache) {
		faulty(fake.Fault{Latency: 10 * time.Second})(s)
		leaves, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			if failures := l.Drain(leaves, []string{"worker-0"}, "slurm-operator: r"); !errors.Is(failures["worker-0"], context.DeadlineExceeded) {
				t.Errorf("the caller who left has %v", failures)
			}
		})
		wg.Go(func() {
			if failures := l.Drain(t.Context(), []string{"worker-1"}, "slurm-operator: r"); failures != nil {
				t.Errorf("the caller who stayed has %v", failures)
			}
		})
		wg.Wait()
	})
}

func TestUpdatesOfEveryKind(t *testing.T) {
	simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Cache) {
		both := []string{"worker-0", "worker-1"}
		s.ResetCounters()
		var wg sync.WaitGroup
		for _, name := range both {
			wg.Go(func() {
				err := update(l, []string{name}, Update{
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
		if err := update(l, both, Update{Features: []string{}}).Err(); !errors.Is(err, rest.Refused) {
			t.Errorf("active features can be made unavailable: %v", err)
		}
		if err := update(l, both, Update{Features: []string{}, FeaturesActive: []string{}}).Err(); err != nil {
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
	simulate(t, 4, func(t *testing.T, s *fake.Slurm, l *Cache) {
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
	simulate(t, 2000, func(t *testing.T, s *fake.Slurm, l *Cache) {
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
