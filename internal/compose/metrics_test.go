// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube/foreignkind"
)

func TestServiceMonitor(t *testing.T) {
	d := load(t)
	for name, test := range map[string]struct {
		spec      string
		missing   bool
		want      *slinkyv1beta1.ServiceMonitor
		isIgnored string
	}{
		"all groups of metrics are scraped by default": {spec: `{}`, want: &slinkyv1beta1.ServiceMonitor{
			Enabled: true, Interval: "30s", ScrapeTimeout: "28s", Endpoints: []slinkyv1beta1.MetricsEndpoint{
				{Path: "/metrics/jobs"}, {Path: "/metrics/jobs-users-accts"}, {Path: "/metrics/nodes"}, {Path: "/metrics/partitions"}, {Path: "/metrics/scheduler"},
			}}},
		"some groups of metrics are scraped": {
			spec: `{slurmNodes: {controller: {openMetrics: {serviceMonitor: {endpoints: [nodes], interval: 1m, scrapeTimeout: 5s}}}}}`,
			want: &slinkyv1beta1.ServiceMonitor{Enabled: true, Interval: "1m", ScrapeTimeout: "5s", Endpoints: []slinkyv1beta1.MetricsEndpoint{{Path: "/metrics/nodes"}}},
		},
		"nobody asked, and there is no such kind": {spec: `{}`, missing: true},
		"there is no such kind": {
			spec: `{slurmNodes: {controller: {openMetrics: {serviceMonitor: {interval: 1m}}}}}`, missing: true,
			isIgnored: "spec.slurmNodes.controller.openMetrics.serviceMonitor (the cluster has no CRD servicemonitors.monitoring.coreos.com)",
		},
		"no metrics": {spec: `{slurmNodes: {controller: {openMetrics: {enabled: false}}}}`},
		"no metrics, and a ServiceMonitor": {
			spec:      `{slurmNodes: {controller: {openMetrics: {enabled: false, serviceMonitor: {endpoints: [jobs]}}}}}`,
			isIgnored: "spec.slurmNodes.controller.openMetrics.serviceMonitor (without openMetrics.enabled)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := d.cluster(t, test.spec)
			in.Observed.Installed.ServiceMonitors = foreignkind.Fit{Installed: !test.missing}
			out := Cluster(in)
			if diff := cmp.Diff(test.want, out.Components.Controller.Spec.Metrics.ServiceMonitor); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var want []string
			if test.isIgnored != "" {
				want = []string{test.isIgnored}
			}
			if diff := cmp.Diff(want, out.Ignored); diff != "" {
				t.Errorf("ignored (-want +got):\n%s", diff)
			}
		})
	}
}
