// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// large starts a cluster of 10,000 nodes with 100,000 jobs, nine tenths of which wait.
func large(tb testing.TB) (*fake.Slurm, *rest.Client) {
	tb.Helper()
	s := fake.New(fake.Options{Key: key})
	nodes := make([]fake.Node, 10_000)
	for i := range nodes {
		nodes[i] = fake.Node{Name: fmt.Sprintf("worker-%d", i), CPUs: 1}
	}
	s.Register(nodes...)
	jobs := make([]fake.Job, 100_000)
	for i := range jobs {
		jobs[i] = fake.Job{Nodes: 1, Limit: time.Hour, Name: "bench"}
	}
	s.SubmitAll(jobs...)
	server := httptest.NewServer(s)
	tb.Cleanup(server.Close)
	issuer, err := token.NewSigned(key, "slurm", 0)
	if err != nil {
		tb.Fatal(err)
	}
	client, err := rest.NewClient(server.URL, issuer, rest.Options{Timeout: 10 * time.Minute}) // with the race detector on a busy machine
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(client.Close)
	return s, client
}

// BenchmarkLarge shows how fast a large cluster answers, the client's part included, and how much memory it takes. A real
// slurmrestd lists 10,000 nodes in 1.3 to 2.2 s, and 28,000 jobs in 32 s.
func BenchmarkLarge(b *testing.B) {
	_, client := large(b)
	ctx := context.Background()
	calls := []struct {
		name string
		call func() error
	}{
		{"Nodes", func() error { _, err := client.Nodes(ctx, time.Time{}); return err }},
		{"NodesUnchanged", func() error { _, err := client.Nodes(ctx, time.Now().Add(time.Minute)); return err }},
		{"Jobs", func() error { _, err := client.Jobs(ctx, time.Time{}); return err }},
		{"Drain", func() error {
			return client.UpdateNodes(ctx, "worker-[0-999]", rest.NodeUpdate{State: "DRAIN", Reason: "r"})
		}},
	}
	for _, c := range calls {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if err := c.call(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(inUse()/1e6, "MB-in-use")
		})
	}
}

func inUse() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.Sys - m.HeapReleased)
}

func TestALargeClusterIsSmallInMemory(t *testing.T) {
	s, client := large(t)
	list, err := client.Jobs(t.Context(), time.Time{})
	if err != nil || len(list.Jobs) != 10_000 {
		t.Fatalf("%d jobs occupy nodes, %v", len(list.Jobs), err)
	}
	if sent := s.Counters().Sent; sent < 500e6 {
		t.Errorf("jobs are only %d bytes", sent)
	}
	if used := inUse(); used > 500e6 {
		t.Errorf("10,000 nodes and 100,000 jobs take %.0f MB", used/1e6)
	}
}
