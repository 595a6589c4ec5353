// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// BenchmarkCluster10000 collects from a fake Slurm with 10,000 nodes of eight GPUs and 5,000 jobs that run, and scrapes. Between two
// collections ten jobs end and ten others start, so that slurmrestd sends all nodes.
func BenchmarkCluster10000(b *testing.B) {
	const nodes, jobs, changes = 10000, 5000, 10
	s := fake.New(fake.Options{})
	all := make([]fake.Node, nodes)
	specs := make([]fake.Job, jobs)
	for i := range all {
		all[i] = fake.Node{Name: fmt.Sprintf("worker-%d", i), CPUs: 64, RealMemory: 512000, Gres: "gpu:8"}
	}
	for i := range specs {
		specs[i] = fake.Job{Name: "train-llm", NodeList: []string{all[i].Name}, Output: "/home/alice/out/%j.out"}
	}
	s.Register(all...)
	s.SubmitAll(specs...)
	issuer, err := token.NewStatic("a.b.c")
	if err != nil {
		b.Fatal(err)
	}
	received := &counting{RoundTripper: s.Transport()}
	var text time.Duration // of the processor, for the text of the nodes
	l, err := slurmcache.New(slurmcache.Key{Namespace: "ns", Name: "c"}, slurmcache.Config{Endpoint: "http://slurm:6820", Issuer: issuer},
		slurmcache.Options{Transport: received, Interval: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.Run(ctx)
	}()
	e := New(l, Options{Interval: time.Hour, MaxInflight: 1})
	collect := func() {
		if _, err := l.Confirm(ctx); err != nil { // the nodes as they are now
			b.Fatal(err)
		}
		for _, c := range e.collectors {
			before := processor(b)
			last, _, _ := c.last()
			part, taken, err := c.collect(ctx, last)
			if err != nil {
				b.Fatal(err)
			}
			c.end(part, taken, 0, nil)
			if c.name == "nodes" {
				text += processor(b) - before
			}
		}
	}
	scrape := func() (size int) {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil)
		r.Header.Set("Accept-Encoding", "gzip")
		answer := httptest.NewRecorder()
		e.Metrics().ServeHTTP(answer, r)
		return answer.Body.Len()
	}
	collect()
	next := int64(1)
	received.nodes, received.others, text = 0, 0, 0
	b.ReportAllocs()
	var scraping time.Duration
	var size int
	for b.Loop() {
		b.StopTimer()
		for range changes {
			s.Finish(next)
			s.Submit(fake.Job{Name: "train-llm", NodeList: []string{all[next-1].Name}})
			next++
		}
		b.StartTimer()
		collect()
		begun := time.Now()
		size = scrape()
		scrape()
		scraping += time.Since(begun)
	}
	b.ReportMetric(float64(text.Milliseconds())/float64(b.N), "cpu-ms/text-of-nodes")
	b.ReportMetric(float64(scraping.Milliseconds())/float64(2*b.N), "ms/scrape")
	b.ReportMetric(float64(received.nodes)/1000/float64(b.N), "kB-of-nodes")
	b.ReportMetric(float64(received.others)/1000/float64(b.N), "kB-of-jobs")
	b.ReportMetric(float64(size)/1000, "gzip-kB")
	series, plain := 0, 0
	for _, c := range e.collectors {
		series += c.part.total
		plain += len(c.part.b)
	}
	b.ReportMetric(float64(series), "series")
	b.ReportMetric(float64(plain)/1000, "text-kB")
	stop()
	<-ended
}

// counting counts the bytes of answers. The fake's own work is in the same process.
type counting struct {
	http.RoundTripper
	nodes, others int64
}

// RoundTrip is part of http.RoundTripper.
func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.RoundTripper.RoundTrip(r)
	if err == nil {
		to := &c.others
		if strings.Contains(r.URL.Path, "/nodes") {
			to = &c.nodes
		}
		answer.Body = &countingBody{answer.Body, to}
	}
	return answer, err
}

type countingBody struct {
	io.ReadCloser
	to *int64
}

// Read is part of io.Reader.
func (c *countingBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	*c.to += int64(n)
	return n, err
}

func processor(b *testing.B) time.Duration {
	b.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
