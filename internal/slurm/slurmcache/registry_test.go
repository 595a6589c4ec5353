// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

func TestRegistryFollowsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlurm(4)
		r := NewRegistry(Options{Transport: s.Transport()})
		changes := r.Subscribe()
		defer changes.Close()
		if _, ok := r.Get(key); ok {
			t.Error("an empty registry has a link")
		}
		first, err := r.Set(key, Config{Endpoint: "http://slurm:6820", Issuer: signed(t, hmacKey)})
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
		again, err := r.Set(key, Config{Endpoint: "http://slurm:6820", Issuer: signed(t, []byte("another"))})
		if err != nil || again != first {
			t.Errorf("another link, or %v", err)
		}
		after(60 * time.Millisecond)
		if got := first.Snapshot(); got.Trust != Fresh || got.Len() != 4 {
			t.Errorf("with the new key it is %s with %d nodes because %q", got.Trust, got.Len(), got.Why)
		}

		if _, err := r.Set(key, Config{Endpoint: "http://elsewhere:6820", Issuer: signed(t, []byte("another"))}); err != nil {
			t.Fatal(err)
		}
		if got := first.Snapshot(); got.Len() != 4 || first.connection.get().String() != "http://elsewhere:6820" {
			t.Errorf("after a move %d nodes are left at %s", got.Len(), first.connection.get())
		}
		if _, err := r.Set(key, Config{Endpoint: "nonsense", Issuer: signed(t, hmacKey)}); err == nil {
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
		if _, err := r.Set(Key{"slurm", "second"}, Config{Endpoint: "http://slurm:6820", Issuer: signed(t, hmacKey)}); err != nil {
			t.Fatal(err)
		}
		cancel()
		wg.Wait()
		if _, err := r.Set(key, Config{Endpoint: "http://slurm:6820", Issuer: signed(t, hmacKey)}); err == nil {
			t.Error("a closed registry makes links")
		}
	})
}

func TestSubscriptionsAreToldOnceUntilTheyEnd(t *testing.T) {
	h := newHub()
	a, b := Key{"ns", "a"}, Key{"ns", "b"}
	all, gone := h.subscribe(), h.subscribe()
	gone.Close()
	h.publish(a, "x", "y")
	h.publish(b, "x")
	h.publish(a, "x")
	h.publish(a)
	select {
	case <-all.Ready():
	default:
		t.Error("it was not ready")
	}
	if got := taken(all); got != "a:x a:y b:x" {
		t.Errorf("it has %s", got)
	}
	if got := taken(gone); got != "" {
		t.Errorf("the one that ended has %s", got)
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
	l, err := r.Set(key, Config{Endpoint: server.URL, Issuer: signed(t, hmacKey)})
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
