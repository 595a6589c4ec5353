// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
)

// metrics composes those of slurmctld, and has Prometheus scrape them where its operator is installed. They are on by default, so a
// missing operator is not reported until a field of the ServiceMonitor is set.
func (c *composer) metrics() slinkyv1beta1.Metrics {
	const at = controllerPath + ".openMetrics.serviceMonitor"
	node := &c.spec.SlurmNodes.Controller.OpenMetrics
	changed := differing(fieldsOf(node.ServiceMonitor), fieldsOf(nebiusv1.ServiceMonitor{Interval: "30s", ScrapeTimeout: "28s"}))
	if node.Enabled != nil && !*node.Enabled {
		c.ignore(changed, at+" (without openMetrics.enabled)")
		return slinkyv1beta1.Metrics{}
	}
	out := slinkyv1beta1.Metrics{Enabled: true}
	if kind := c.installed.ServiceMonitors; !kind.Usable() {
		c.ignore(changed || kind.Installed, at+" ("+kind.Why(slurmctld.ServiceMonitorDefinition)+")")
		return out
	}
	groups := node.ServiceMonitor.Endpoints
	if len(groups) == 0 {
		groups = []string{"jobs", "jobs-users-accts", "nodes", "partitions", "scheduler"}
	}
	monitor := &slinkyv1beta1.ServiceMonitor{
		Enabled:       true,
		Interval:      slinkyv1beta1.PrometheusDuration(node.ServiceMonitor.Interval),
		ScrapeTimeout: slinkyv1beta1.PrometheusDuration(node.ServiceMonitor.ScrapeTimeout),
	}
	for _, group := range groups {
		monitor.Endpoints = append(monitor.Endpoints, slinkyv1beta1.MetricsEndpoint{Path: "/metrics/" + group})
	}
	out.ServiceMonitor = monitor
	return out
}
