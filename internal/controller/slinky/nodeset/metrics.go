// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/health/budget"
)

// metrics show how many workers are out of service. They are computed when they are collected: from the statuses of the NodeSets in the
// cache, and from the brakes.
type metrics struct {
	reader       client.Reader
	brakes       *budget.Brakes
	outOfService *prometheus.Desc
	waiting      *prometheus.Desc
	limit        *prometheus.Desc
}

// Metrics returns the metrics of all NodeSets that the reader has.
func Metrics(reader client.Reader, brakes *budget.Brakes) prometheus.Collector {
	gauge := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName("coxswain", "nodes", name), help, append([]string{"namespace", "nodeset"}, labels...), nil)
	}
	return &metrics{
		reader: reader, brakes: brakes,
		outOfService: gauge("out_of_service", "Workers whose Slurm nodes get no new jobs, by the reason of condition coxswain.dev/OutOfService.", "reason"),
		waiting:      gauge("waiting_for_brake", "Workers that checks want out of service, and that wait because of --max-nodes-drained-by-checks."),
		limit:        gauge("drained_by_checks_limit", "Workers that checks may take out of service at the same time."),
	}
}

// Describe is part of prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{m.outOfService, m.waiting, m.limit} {
		to <- desc
	}
}

// Collect is part of prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	var sets slinkyv1beta1.NodeSetList
	if err := m.reader.List(context.Background(), &sets, client.UnsafeDisableDeepCopy); err != nil { // they are only read
		to <- prometheus.NewInvalidMetric(m.outOfService, err)
		return
	}
	for i := range sets.Items {
		n := &sets.Items[i]
		gauge := func(desc *prometheus.Desc, value int, labels ...string) {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), append([]string{n.Namespace, n.Name}, labels...)...)
		}
		for _, o := range n.Status.OutOfService {
			gauge(m.outOfService, int(o.Count), o.Reason)
		}
		gauge(m.waiting, len(m.brakes.Of(client.ObjectKeyFromObject(n)).Waiting))
		gauge(m.limit, m.brakes.Limit(int(n.Status.Replicas)))
	}
}
