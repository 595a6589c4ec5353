// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// Labels of metrics: a cache's key, and what the metric is divided by.
const (
	labelNamespace  = "namespace"
	labelController = "controller"
	labelCall       = "call"
	labelResult     = "result"
	labelTrust      = "trust"
)

// metrics count what happened on the caches of a registry. The present state is read from the caches when metrics are collected.
type metrics struct {
	calls    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	received *prometheus.CounterVec
	sent     *prometheus.CounterVec
	requests *prometheus.CounterVec
	batch    *prometheus.HistogramVec

	trust  *prometheus.Desc
	age    *prometheus.Desc
	nodes  *prometheus.Desc
	spent  *prometheus.Desc
	limit  *prometheus.Desc
	paused *prometheus.Desc
}

func newMetrics() *metrics {
	cache := []string{labelNamespace, labelController}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "coxswain", Subsystem: "slurm", Name: name, Help: help}, slices.Concat(cache, labels))
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Namespace: "coxswain", Subsystem: "slurm", Name: name, Help: help, Buckets: buckets}, slices.Concat(cache, labels))
	}
	gauge := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName("coxswain", "slurm", name), help, slices.Concat(cache, labels), nil)
	}
	return &metrics{
		calls:    counter("calls_total", "Calls to slurmrestd, by kind and by what became of them.", labelCall, labelResult),
		duration: histogram("call_duration_seconds", "Time from a request to slurmrestd to the end of its answer.", prometheus.ExponentialBuckets(0.002, 4, 8), labelCall),
		received: counter("received_bytes_total", "Bytes of the bodies of slurmrestd's answers.", labelCall),
		sent:     counter("sent_bytes_total", "Bytes of the bodies of requests to slurmrestd.", labelCall),
		requests: counter("write_requests_total", "Writes about nodes that controllers asked for; those that are equal leave as one call."),
		batch:    histogram("write_nodes", "Nodes in one call that writes.", []float64{1, 2, 5, 10, 50, 100, 500, 1000}),

		trust:  gauge("trust", "1 for how far the snapshot of the nodes may be relied on, 0 for the others.", labelTrust),
		age:    gauge("age_seconds", "Time since slurmrestd was asked for what the snapshot says."),
		nodes:  gauge("nodes", "Nodes in the snapshot."),
		spent:  gauge("destructive_actions", "Deletions and evictions of workers in the last minute."),
		limit:  gauge("destructive_actions_limit", "Deletions and evictions of workers that a minute may see."),
		paused: gauge("destructive_actions_paused", "1 while deletions wait because the limit is reached."),
	}
}

// observe notes a call.
func (m *metrics) observe(key Key, o rest.Observation) {
	m.calls.WithLabelValues(key.Namespace, key.Name, o.Call, o.Result).Inc()
	m.duration.WithLabelValues(key.Namespace, key.Name, o.Call).Observe(o.Took.Seconds())
	m.received.WithLabelValues(key.Namespace, key.Name, o.Call).Add(float64(o.Received))
	m.sent.WithLabelValues(key.Namespace, key.Name, o.Call).Add(float64(o.Sent))
}

// forget deletes the metrics of a cache.
func (m *metrics) forget(key Key) {
	of := prometheus.Labels{labelNamespace: key.Namespace, labelController: key.Name}
	for _, vector := range []interface {
		DeletePartialMatch(prometheus.Labels) int
	}{m.calls, m.duration, m.received, m.sent, m.requests, m.batch} {
		vector.DeletePartialMatch(of)
	}
}

// Describe is part of prometheus.Collector.
func (r *Registry) Describe(to chan<- *prometheus.Desc) {
	for _, vector := range r.metrics.vectors() {
		vector.Describe(to)
	}
	m := r.metrics
	for _, desc := range []*prometheus.Desc{m.trust, m.age, m.nodes, m.spent, m.limit, m.paused} {
		to <- desc
	}
}

func (m *metrics) vectors() []prometheus.Collector {
	return []prometheus.Collector{m.calls, m.duration, m.received, m.sent, m.requests, m.batch}
}

// Collect is part of prometheus.Collector.
func (r *Registry) Collect(to chan<- prometheus.Metric) {
	for _, vector := range r.metrics.vectors() {
		vector.Collect(to)
	}
	r.mu.Lock()
	caches := make([]*Cache, 0, len(r.caches))
	for _, run := range r.caches {
		caches = append(caches, run.cache)
	}
	r.mu.Unlock()
	for _, l := range caches {
		r.metrics.collect(to, l, r.options.Clock.Now())
	}
}

// collect sends the present metrics of one cache.
func (m *metrics) collect(to chan<- prometheus.Metric, l *Cache, now time.Time) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, append([]string{l.key.Namespace, l.key.Name}, labels...)...)
	}
	yes := map[bool]float64{true: 1}
	snapshot, budget := l.Snapshot(), l.Budget(now)
	for _, trust := range []Trust{Fresh, Stale, Suspect} {
		gauge(m.trust, yes[snapshot.Trust == trust], string(trust))
	}
	if !snapshot.Taken.IsZero() {
		gauge(m.age, now.Sub(snapshot.Taken).Seconds())
	}
	gauge(m.nodes, float64(snapshot.Len()))
	gauge(m.spent, float64(budget.Spent))
	gauge(m.limit, float64(budget.Limit))
	gauge(m.paused, yes[!budget.Until.IsZero()])
}

// Trace makes spans of what a cache sends to Slurm.
type Trace interface {
	// Slurm wraps a transport so that each request of a traced caller to a cluster's slurmrestd has a span.
	Slurm(cluster string, next http.RoundTripper) http.RoundTripper
	// Write begins the span of a write that a cache makes for several callers, some of which may be traced. The caller ends it.
	Write(ctx context.Context, cluster string, callers []trace.SpanContext) (with context.Context, end func())
}

// wrap returns how the transport of a cache is wrapped; nil leaves it as it is.
func (o Options) wrap(key Key) func(http.RoundTripper) http.RoundTripper {
	if o.Trace == nil {
		return nil
	}
	return func(next http.RoundTripper) http.RoundTripper { return o.Trace.Slurm(key.String(), next) }
}

// tracing begins the span of a write.
type tracing func(ctx context.Context, callers []trace.SpanContext) (context.Context, func())

// trace lets writes have spans. Without it callers are not recorded.
func (w *writer) trace(traced tracing) { w.states.traced, w.attributes.traced = traced, traced }

// callers are the spans of the callers of the write, each once.
func (g *group) callers() []trace.SpanContext {
	var out []trace.SpanContext
	seen := map[trace.SpanID]bool{}
	for _, r := range g.requests {
		if id := r.caller.SpanID(); r.caller.IsValid() && !seen[id] {
			seen[id] = true
			out = append(out, r.caller)
		}
	}
	return out
}
