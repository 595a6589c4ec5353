// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// A change in Slurm comes to the browser through a real Slurm cache.
func TestAChangeInSlurmIsShown(t *testing.T) {
	slurm := fake.New(fake.Options{})
	slurm.Register(fake.Node{Name: "cpu-0"}, fake.Node{Name: "stranger"})
	caches := slurmcache.NewRegistry(slurmcache.Options{Interval: 20 * time.Millisecond, Transport: slurm.Transport()})
	defer caches.Close()
	issuer, err := token.NewSigned([]byte(strings.Repeat("k", 32)), "slurm", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := caches.Set(demo(), slurmcache.Config{Endpoint: "http://slurm:6820", Issuer: issuer}); err != nil {
		t.Fatal(err)
	}
	s := New(gatherer(t, caches), caches)
	soon(s)
	s.limits.age = time.Hour // nothing but the Slurm cache wakes it
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { _ = s.Start(ctx) })
	stream := subscribe(t, newListener(t, s), "", nil)
	shows := func(want ...string) {
		t.Helper()
		for {
			e, ok := stream.next()
			if !ok {
				t.Fatalf("nothing shows %q", want)
			}
			all := strings.Join([]string{e.fragments["main"], e.fragments["set-0-0"], e.fragments["set-1-0"]}, "")
			missing := false
			for _, part := range want {
				missing = missing || !strings.Contains(all, part)
			}
			if !missing {
				return
			}
		}
	}
	shows("cpu-0\nidle", "cpu-1\nunknown (Slurm does not have it)", "stranger\nidle", "Nodes without a worker")
	l, _ := caches.Get(demo())
	if err := l.Drain(t.Context(), []string{"cpu-0"}, "slurm-operator: test").Err(); err != nil {
		t.Fatal(err)
	}
	calls := func() int { return slurm.Counters().Calls["GET jobs/state"] }
	awaited(t, "Slurm is asked for jobs", func() bool { return calls() > 0 })
	if n := slurm.Counters().Calls["GET jobs"]; n > 0 {
		t.Errorf("Slurm was asked %d times for the list of all jobs", n)
	}
	shows("cpu-0\ndrained", "Reason: slurm-operator: test", "Out of service: FailedCheck: a check", "Plan: goes after cpu-1")
}
