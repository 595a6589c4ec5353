// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/coxswain-hpc/coxswain/internal/slurm/fake"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	key     = Key{Namespace: "slurm", Name: "main"}
	hmacKey = []byte("the-key-of-the-cluster")
)

// simulate runs a test in synthetic time, with a running link to a fake Slurm of some nodes. The test fails when
// anything that it started is left at its end.
func simulate(t *testing.T, nodes int, test func(t *testing.T, s *fake.Slurm, l *Link)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newSlurm(nodes)
		l, err := New(key, Config{"http://slurm:6820", signed(t, hmacKey)}, Options{Transport: s.Transport()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			l.Run(ctx)
		}()
		synctest.Wait()
		test(t, s, l)
		cancel()
		<-ended
	})
}

func newSlurm(nodes int) *fake.Slurm {
	s := fake.New(fake.Options{Key: hmacKey})
	for i := range nodes {
		s.Register(fake.Node{Name: fmt.Sprintf("worker-%d", i)})
	}
	return s
}

func signed(t *testing.T, key []byte) token.Issuer {
	t.Helper()
	issuer, err := token.NewSigned(key, "slurm", 0)
	if err != nil {
		t.Fatal(err)
	}
	return issuer
}

// after lets synthetic time pass; it takes no real time.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func states(s *Snapshot) string {
	var out []string
	for n := range s.Nodes() {
		out = append(out, n.Name+"="+strings.Join(n.State, "+"))
	}
	slices.Sort(out)
	return strings.ReplaceAll(strings.Join(out, " "), "+DYNAMIC_NORM", "")
}

func taken(s *Subscription) string {
	var out []string
	for _, c := range s.Take() {
		out = append(out, c.Link.Name+":"+c.Node)
	}
	return strings.Join(out, " ")
}

func TestSnapshotFollowsSlurm(t *testing.T) {
	simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Link) {
		if got := l.Snapshot(); got.Trust != Fresh || states(got) != "worker-0=IDLE worker-1=IDLE worker-2=IDLE" || got.Meta.Release != "26.05.5" {
			t.Fatalf("at first: %s %s %+v", got.Trust, states(got), got.Meta)
		}
		changes := l.Subscribe()
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

func TestAtRestOnlyUnchangedIsSent(t *testing.T) {
	simulate(t, 500, func(t *testing.T, s *fake.Slurm, _ *Link) {
		after(10 * time.Second)
		s.ResetCounters()
		after(10 * time.Minute)
		c := s.Counters()
		if c.Calls["GET nodes"] > 600 || c.Calls["GET nodes"] < 590 || c.Unchanged != c.Calls["GET nodes"] || c.Sent != 0 {
			t.Errorf("ten minutes cost %+v", c)
		}
	})
}

func TestQuestionsOfAllKindsTakeATwentiethOfTheTime(t *testing.T) {
	simulate(t, 10, func(t *testing.T, s *fake.Slurm, l *Link) {
		const cost = 1200 * time.Millisecond
		s.SetFault(func(*http.Request) *fake.Fault {
			s.Register(fake.Node{Name: "restless"})
			s.Submit(fake.Job{NodeList: []string{"worker-1"}, CPUs: 1, Limit: 2 * time.Second})
			return &fake.Fault{Latency: cost}
		})
		s.ResetCounters()
		l.WantJobs("somebody", "worker-1")
		l.Attend(Interest{Settled: func(Daemons) bool { return false }, Watch: true})
		for range 60 {
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
		for call, least := range map[string]time.Duration{"GET nodes": time.Hour / 36, "GET jobs": time.Hour / 150, "GET conf": time.Hour / 500} {
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
			simulate(t, 4, func(t *testing.T, s *fake.Slurm, l *Link) {
				after(10 * time.Second)
				changes := l.Subscribe()
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

func faulty(f fake.Fault) func(*fake.Slurm) {
	return func(s *fake.Slurm) { s.SetFault(func(*http.Request) *fake.Fault { return &f }) }
}

func healthy(s *fake.Slurm) { s.SetFault(nil) }

// quietly is a fault that shows when the list changes.
func quietly(f fake.Fault) func(*fake.Slurm) {
	return func(s *fake.Slurm) { faulty(f)(s); s.Register(fake.Node{Name: "worker-0"}) }
}

func healthyAgain(s *fake.Slurm) { s.SetFault(nil); s.Register(fake.Node{Name: "worker-0"}) }

func TestLostStateIsSuspectUntilItSettles(t *testing.T) {
	simulate(t, 10, func(t *testing.T, s *fake.Slurm, l *Link) {
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
		after(settle + 20*time.Second)
		if got := l.Snapshot(); got.Trust != Fresh || got.Len() != 0 {
			t.Errorf("when nobody came back it is %s with %d nodes", got.Trust, got.Len())
		}
	})
}

func TestEqualWritesLeaveAsOneCall(t *testing.T) {
	simulate(t, 1000, func(t *testing.T, s *fake.Slurm, l *Link) {
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
	simulate(t, 1000, func(t *testing.T, s *fake.Slurm, l *Link) {
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
	simulate(t, 1000, func(t *testing.T, s *fake.Slurm, l *Link) {
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
	simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Link) {
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
		write(func() Failures { return l.Update(ctx, []string{"worker-2"}, Update{Comment: new("c")}) })
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
		"one unknown node":              {nil, []string{"nobody"}, map[string]error{"nobody": rest.Absent}, 1},
		"only unknown nodes":            {nil, []string{"nobody", "noone"}, map[string]error{"nobody": rest.Absent, "noone": rest.Absent}, 1},
		"no answer fails all":           {&fake.Fault{Status: 503}, []string{"worker-0", "worker-1"}, map[string]error{"worker-0": rest.Unavailable, "worker-1": rest.Unavailable}, 1},
		"a list that hides nodes":       {&fake.Fault{KeepNode: func(string) bool { return false }}, []string{"worker-0", "nobody"}, map[string]error{"worker-0": rest.Unavailable, "nobody": rest.Unavailable}, 1},
		"an unknown node does not harm": {nil, []string{"nobody", "worker-0"}, map[string]error{"nobody": rest.Absent}, 2},
		"no nodes":                      {nil, nil, map[string]error{}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			simulate(t, 4, func(t *testing.T, s *fake.Slurm, l *Link) {
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
	simulate(t, 1, func(t *testing.T, s *fake.Slurm, l *Link) {
		if failures := l.Drain(t.Context(), []string{"worker-0"}, " "); len(failures) != 1 || len(s.Writes()) != 0 {
			t.Errorf("failures are %v after %d writes", failures, len(s.Writes()))
		}
	})
}

func TestCallersMayLeave(t *testing.T) {
	simulate(t, 2, func(t *testing.T, s *fake.Slurm, l *Link) {
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

func TestRegistryFollowsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlurm(4)
		r := NewRegistry(Options{Transport: s.Transport()})
		changes := r.Subscribe()
		defer changes.Close()
		if _, ok := r.Get(key); ok {
			t.Error("an empty registry has a link")
		}
		first, err := r.Set(key, Config{"http://slurm:6820", signed(t, hmacKey)})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := taken(changes); got != "main: main:worker-0 main:worker-1 main:worker-2 main:worker-3" {
			t.Errorf("changed: %s", got)
		}

		s.SetKey([]byte("another"))
		after(time.Minute)
		if got := first.Snapshot(); got.Trust != Stale || got.Len() != 4 || !strings.Contains(got.Why, "unauthorized") {
			t.Errorf("after the key was rotated it is %s with %d nodes because %q", got.Trust, got.Len(), got.Why)
		}
		again, err := r.Set(key, Config{"http://slurm:6820", signed(t, []byte("another"))})
		if err != nil || again != first {
			t.Errorf("another link, or %v", err)
		}
		after(60 * time.Millisecond)
		if got := first.Snapshot(); got.Trust != Fresh || got.Len() != 4 {
			t.Errorf("with the new key it is %s with %d nodes because %q", got.Trust, got.Len(), got.Why)
		}

		if _, err := r.Set(key, Config{"http://elsewhere:6820", signed(t, []byte("another"))}); err != nil {
			t.Fatal(err)
		}
		if got := first.Snapshot(); got.Len() != 4 || first.Client().String() != "http://elsewhere:6820" {
			t.Errorf("after a move %d nodes are left at %s", got.Len(), first.Client())
		}
		if _, err := r.Set(key, Config{"nonsense", signed(t, hmacKey)}); err == nil {
			t.Error("a bad endpoint is taken")
		}
		if _, err := r.Set(key, Config{Endpoint: "http://elsewhere:6820"}); err == nil {
			t.Error("no issuer is taken")
		}

		faulty(fake.Fault{Latency: time.Hour})(s)
		var wg sync.WaitGroup
		wg.Go(func() {
			failures := first.Drain(t.Context(), []string{"worker-0"}, "slurm-operator: r")
			if len(failures) != 1 || !errors.Is(failures["worker-0"], ErrClosed) {
				t.Errorf("a write to a link that ends has %v", failures)
			}
		})
		after(time.Second)
		taken(changes)
		r.Delete(key)
		wg.Wait()
		if _, ok := r.Get(key); ok || taken(changes) != "main:" {
			t.Error("the link is still there")
		}
		if failures := undrain(first, "worker-0"); !errors.Is(failures["worker-0"], ErrClosed) {
			t.Errorf("a write to a link that ended has %v", failures)
		}
		r.Delete(key)
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() {
			if err := r.Start(ctx); err != nil {
				t.Error(err)
			}
		})
		if _, err := r.Set(Key{"slurm", "second"}, Config{"http://slurm:6820", signed(t, hmacKey)}); err != nil {
			t.Fatal(err)
		}
		cancel()
		wg.Wait()
		if _, err := r.Set(key, Config{"http://slurm:6820", signed(t, hmacKey)}); err == nil {
			t.Error("a closed registry makes links")
		}
	})
}

func TestSubscriptionsAreForOneLinkOrAll(t *testing.T) {
	h := newHub()
	a, b := Key{"ns", "a"}, Key{"ns", "b"}
	one, all, gone := h.subscribe(&a), h.subscribe(nil), h.subscribe(nil)
	gone.Close()
	h.publish(a, "x", "y")
	h.publish(b, "x")
	h.publish(a, "x")
	h.publish(a)
	if got := taken(one); got != "a:x a:y" {
		t.Errorf("one has %s", got)
	}
	if got := taken(all); got != "a:x a:y b:x" {
		t.Errorf("all has %s", got)
	}
	if got := taken(gone); got != "" {
		t.Errorf("gone has %s", got)
	}
	select {
	case <-one.Ready():
	default:
		t.Error("one was not ready")
	}
}

// TestOverARealConnection runs a registry over real HTTP and in real time; TestMain sees what it leaves.
func TestOverARealConnection(t *testing.T) {
	s := newSlurm(100)
	server := httptest.NewServer(s)
	defer server.Close()
	r := NewRegistry(Options{Interval: 10 * time.Millisecond})
	defer r.Close()
	changes := r.Subscribe()
	defer changes.Close()
	l, err := r.Set(key, Config{server.URL, signed(t, hmacKey)})
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.After(time.Minute)
	until := func(what string, done func() bool) {
		t.Helper()
		for !done() {
			select {
			case <-changes.Ready():
				changes.Take()
			case <-deadline:
				t.Fatalf("%s did not happen; the link is %s because %q", what, l.Snapshot().Trust, l.Snapshot().Why)
			}
		}
	}
	until("a first list", func() bool { return l.Snapshot().Len() == 100 })
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			if err := l.Drain(t.Context(), []string{fmt.Sprintf("worker-%d", i)}, "slurm-operator: r").Err(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	until("a drain of all", func() bool {
		for n := range l.Snapshot().Nodes() {
			if !slices.Contains(n.State, "DRAIN") {
				return false
			}
		}
		return true
	})
	if calls := s.Counters().Calls["POST nodes"]; calls > 10 {
		t.Errorf("100 drains took %d calls", calls)
	}
	s.Stop()
	until("stale", func() bool { return l.Snapshot().Trust == Stale })
}

// undrain ends the drain of a node, and waits for what becomes of it.
func undrain(l *Link, name string) Failures {
	answer := make(chan error, 1)
	l.UndrainLater(name, time.Time{}, func(err error) { answer <- err })
	if err := <-answer; err != nil {
		return Failures{name: err}
	}
	return nil
}
