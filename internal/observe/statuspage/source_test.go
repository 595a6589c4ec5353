// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// memory is a source that a test changes.
type memory struct {
	mu       sync.Mutex
	clusters map[slurmcache.Key]Facts
	err      error
	// jobs and jobsErr are Slurm's answer about jobs, and asked is how often it was asked.
	jobs    slurmcache.JobRecords
	jobsErr error
	asked   int
}

func newMemory(all ...Facts) *memory {
	m := &memory{clusters: map[slurmcache.Key]Facts{}}
	for _, f := range all {
		m.clusters[f.Cluster] = f
	}
	return m
}

// Clusters implements Source for a test with one cluster.
func (m *memory) Clusters(context.Context) ([]Facts, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Facts
	for _, f := range m.clusters {
		out = append(out, f)
	}
	return out, m.err
}

// Cluster implements Source.
func (m *memory) Cluster(_ context.Context, key slurmcache.Key) (Facts, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok := m.clusters[key]
	return f, ok, m.err
}

// Jobs implements Source.
func (m *memory) Jobs(context.Context, slurmcache.Key) (slurmcache.JobRecords, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	return m.jobs, m.jobsErr
}

// edit changes the facts of the demo cluster. What was gathered before stays as it was.
func (m *memory) edit(change func(f *Facts)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.clusters[demo()]
	f.Nodes = append([]Node(nil), f.Nodes...)
	change(&f)
	m.clusters[demo()] = f
}

// serve runs a server of the source until the test ends. A test may change its limits before.
func serve(t *testing.T, source Source, change func(s *Server)) (s *Server, url string) {
	t.Helper()
	caches := slurmcache.NewRegistry(slurmcache.Options{})
	s = New(source, caches)
	if change != nil {
		change(s)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	listener := httptest.NewServer(s)
	t.Cleanup(func() {
		stop()
		running.Wait() // the streams have ended, and the listener does not wait for them
		listener.Close()
		caches.Close()
	})
	return s, listener.URL
}

// newListener serves a handler until the test ends.
func newListener(t *testing.T, handler http.Handler) string {
	t.Helper()
	listener := httptest.NewServer(handler)
	t.Cleanup(func() {
		listener.CloseClientConnections()
		listener.Close()
	})
	return listener.URL
}
