// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmctld

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube/foreignkind"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
)

// ServiceMonitorKind is the kind by which the Prometheus operator learns what to scrape
// (https://prometheus-operator.dev/docs/api-reference/api/#monitoring.coreos.com/v1.ServiceMonitor).
// Not every cluster has it.
var ServiceMonitorKind = schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"} //nolint:gochecknoglobals // a constant

// ServiceMonitorDefinition is the name of the CRD of ServiceMonitorKind.
const ServiceMonitorDefinition = "servicemonitors.monitoring.coreos.com"

// ServiceMonitors are that kind as ServiceMonitor writes it.
func ServiceMonitors() foreignkind.Kind {
	return foreignkind.Kind{GroupVersionKind: ServiceMonitorKind, Definition: ServiceMonitorDefinition, Fields: []string{
		"spec.endpoints.path", "spec.endpoints.port", "spec.endpoints.scheme", "spec.namespaceSelector.matchNames", "spec.selector.matchLabels",
	}}
}

// WantsServiceMonitor reports whether the spec asks for one.
func WantsServiceMonitor(c *slinkyv1beta1.Controller) bool {
	m := c.Spec.Metrics.ServiceMonitor
	return !c.Spec.External && c.Spec.Metrics.Enabled && m != nil && m.Enabled
}

// ServiceMonitor returns the object that leads Prometheus to slurmctld's metrics.
func ServiceMonitor(c *slinkyv1beta1.Controller) *unstructured.Unstructured {
	set, monitor := Labels(c), c.Spec.Metrics.ServiceMonitor
	meta := pod.ObjectMeta(c, c.ServiceMonitorName(), set, monitor.Metadata)
	endpoints := monitor.Endpoints
	if len(endpoints) == 0 {
		for _, path := range []string{"/metrics/jobs", "/metrics/nodes", "/metrics/partitions", "/metrics/scheduler"} {
			endpoints = append(endpoints, slinkyv1beta1.MetricsEndpoint{Path: path})
		}
	}
	var list []any
	for _, e := range endpoints {
		endpoint := map[string]any{"port": slinkyv1beta1.NameSlurmctld, "scheme": "http", "path": e.Path}
		if interval := cmp.Or(e.Interval, monitor.Interval); interval != "" {
			endpoint["interval"] = string(interval)
		}
		if timeout := cmp.Or(e.ScrapeTimeout, monitor.ScrapeTimeout); timeout != "" {
			endpoint["scrapeTimeout"] = string(timeout)
		}
		list = append(list, endpoint)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"endpoints":         list,
		"namespaceSelector": map[string]any{"matchNames": []any{c.Namespace}},
		"selector":          map[string]any{"matchLabels": plain(set.Selector())},
	}}}
	u.SetGroupVersionKind(ServiceMonitorKind)
	u.SetNamespace(meta.Namespace)
	u.SetName(meta.Name)
	u.SetLabels(meta.Labels)
	u.SetAnnotations(meta.Annotations)
	return u
}

func plain(labels map[string]string) map[string]any {
	out := map[string]any{}
	for key, value := range labels {
		out[key] = value
	}
	return out
}
