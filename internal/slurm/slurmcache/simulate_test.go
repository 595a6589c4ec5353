// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	key     = Key{Namespace: "slurm", Name: "main"}
	hmacKey = []byte("the-key-of-the-cluster")
)

// simulate runs a test in synthetic time, with a running cache of a fake Slurm of some nodes. The test fails when
// anything that it started is left at its end.
func simulate(t *testing.T, nodes int, test func(t *testing.T, s *fake.Slurm, l *Cache)) {
	t.Helper()
	simulateSlurm(t, func() *fake.Slurm { return newSlurm(nodes) }, test)
}

// simulateSlurm is simulate with a fake Slurm that is started in the synthetic time.
func simulateSlurm(t *testing.T, start func() *fake.Slurm, test func(t *testing.T, s *fake.Slurm, l *Cache)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := start()
		l, err := New(key, Config{Endpoint: "http://slurm:6820", Issuer: signed(t, hmacKey)}, Options{Transport: s.Transport()})
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
	s := fake.New(fake.Options{Key: hmacKey, Accounting: true})
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
		out = append(out, c.Cluster.Name+":"+c.Node)
	}
	return strings.Join(out, " ")
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

// undrain ends the drain of a node, and waits for the result.
func undrain(l *Cache, name string) Failures {
	answer := make(chan error, 1)
	l.UndrainLater(context.Background(), name, time.Time{}, func(err error) { answer <- err })
	if err := <-answer; err != nil {
		return Failures{name: err}
	}
	return nil
}

// update changes attributes of nodes, and waits for the result.
func update(l *Cache, names []string, u Update) Failures {
	type answer struct {
		name string
		err  error
	}
	answers, failures := make(chan answer, len(names)), Failures{}
	for _, name := range names {
		l.UpdateLater(context.Background(), name, u, func(err error) { answers <- answer{name, err} })
	}
	for range names {
		if a := <-answers; a.err != nil {
			failures[a.name] = a.err
		}
	}
	if len(failures) == 0 {
		return nil
	}
	return failures
}
