// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// own are the metrics of the exporter itself.
type own struct {
	exporter *Exporter
	requests atomic.Int64
	exported atomic.Int64

	duration, attempts, failures, served, series *prometheus.Desc
	collectorDuration, errors, inflight, skipped *prometheus.Desc
	age, missing, dropped                        *prometheus.Desc
}

func newOwn(e *Exporter) *own {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("slurm_exporter_"+name, help, labels, nil)
	}
	return &own{
		exporter: e,
		duration: desc("collection_duration_seconds", "How long the last collection took, that of its longest part."),
		attempts: desc("collection_attempts_total", "Collections that were begun."),
		failures: desc("collection_failures_total", "Collections of which a part did not succeed."),
		served:   desc("metrics_requests_total", "Requests for the metrics of the cluster."),
		series:   desc("metrics_exported", "Series in the last answer to such a request."),

		collectorDuration: desc("collector_duration_seconds", "How long the last run of a collector took.", "collector"),
		errors:            desc("collector_errors_total", "Runs of a collector that did not succeed.", "collector"),
		inflight:          desc("collector_inflight", "Runs of a collector that have not ended.", "collector"),
		skipped:           desc("collector_skipped_total", "Runs of a collector that were left out because the one before had not ended.", "collector"),

		age:     desc("collector_age_seconds", "Time since Slurm was asked for what a collector shows.", "collector"),
		missing: desc("jobs_missing", "Jobs of which Slurm has been asked for nothing but the state yet, and which are not shown."),
		dropped: desc("series_dropped_total", "Series that were left out because their metric has as many as it may.", "metric"),
	}
}

// Describe is part of prometheus.Collector.
func (o *own) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		o.duration, o.attempts, o.failures, o.served, o.series, o.collectorDuration, o.errors, o.inflight, o.skipped, o.age, o.missing, o.dropped,
	} {
		to <- d
	}
}

// Collect is part of prometheus.Collector.
func (o *own) Collect(to chan<- prometheus.Metric) {
	send := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, kind, value, labels...)
	}
	now := time.Now()
	longest, attempts, failures, missing := 0., 0, 0, 0
	dropped := map[string]int{}
	for _, c := range o.exporter.collectors {
		c.mu.Lock()
		send(o.collectorDuration, prometheus.GaugeValue, c.took.Seconds(), c.name)
		send(o.errors, prometheus.CounterValue, float64(c.failures), c.name)
		send(o.inflight, prometheus.GaugeValue, float64(c.inflight()), c.name)
		send(o.skipped, prometheus.CounterValue, float64(c.skipped), c.name)
		if c.part != nil {
			send(o.age, prometheus.GaugeValue, now.Sub(c.taken).Seconds(), c.name)
			missing += c.part.missing
			for _, f := range c.part.families {
				dropped[f.name] += 0 // a counter that begins above 0 has no increase
			}
		}
		longest, attempts, failures = max(longest, c.took.Seconds()), max(attempts, c.attempts+c.skipped), max(failures, c.failures)
		for name, n := range c.dropped {
			dropped[name] += n
		}
		c.mu.Unlock()
	}
	send(o.duration, prometheus.GaugeValue, longest)
	send(o.attempts, prometheus.CounterValue, float64(attempts))
	send(o.failures, prometheus.CounterValue, float64(failures))
	send(o.served, prometheus.CounterValue, float64(o.requests.Load()))
	send(o.series, prometheus.GaugeValue, float64(o.exported.Load()))
	send(o.missing, prometheus.GaugeValue, float64(missing))
	for name, n := range dropped {
		send(o.dropped, prometheus.CounterValue, float64(n), name)
	}
}
