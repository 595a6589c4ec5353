// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"encoding/json"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube/foreignkind"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
)

// PodMonitorKind is the kind by which the Prometheus operator learns which pods to scrape
// (https://prometheus-operator.dev/docs/api-reference/api/#monitoring.coreos.com/v1.PodMonitor). Not every cluster has it.
var PodMonitorKind = schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "PodMonitor"} //nolint:gochecknoglobals // a constant

// PodMonitorDefinition is the name of its CRD.
const PodMonitorDefinition = "podmonitors.monitoring.coreos.com"

// PodMonitors are that kind as a SlurmCluster with an exporter has one.
func PodMonitors() foreignkind.Kind {
	return foreignkind.Kind{GroupVersionKind: PodMonitorKind, Definition: PodMonitorDefinition, Fields: []string{
		"spec.namespaceSelector.matchNames", "spec.podMetricsEndpoints.metricRelabelings", "spec.podMetricsEndpoints.path",
		"spec.podMetricsEndpoints.port", "spec.selector.matchLabels",
	}}
}

const podMonitorPath = exporterPath + ".podMonitorConfig"

// podMonitor has Prometheus scrape the exporter where its operator is installed. That is the default, so a missing operator is not
// reported until a field is set.
func (c *composer) podMonitor(spec *nebiusv1.Exporter) {
	config := spec.PodMonitorConfig
	relabelings := c.relabelings(config.RelabelConfig, podMonitorPath+".relabelConfig")
	for i, rule := range relabelings {
		c.checkTarget(rule, index(podMonitorPath+".relabelConfig", i))
	}
	metricRelabelings := c.relabelings(config.MetricRelabelConfigs, podMonitorPath+".metricRelabelConfigs")
	if kind := c.installed.PodMonitors; !kind.Usable() {
		changed := differing(fieldsOf(config), fieldsOf(nebiusv1.PodMonitorConfig{JobLabel: "slurm-exporter", Interval: "30s", ScrapeTimeout: "20s"}))
		c.ignore(changed || kind.Installed, podMonitorPath+" ("+kind.Why(PodMonitorDefinition)+")")
		return
	}
	// The labels of the pod change whenever it is made anew, and a dashboard would show all metrics twice
	// (docs/contributors/predecessors/soperator-objects.md#the-exporter).
	metricRelabelings = append([]any{map[string]any{"action": "labeldrop", "regex": "pod|instance|container"}}, metricRelabelings...)
	var endpoints []any
	for _, port := range []string{exporterPortName, exporterMonitoringPortName} {
		endpoint := map[string]any{"port": port, "path": "/metrics", "metricRelabelings": metricRelabelings}
		for name, value := range map[string]string{"interval": config.Interval, "scrapeTimeout": config.ScrapeTimeout} {
			if value != "" {
				endpoint[name] = value
			}
		}
		if len(relabelings) > 0 {
			endpoint["relabelings"] = relabelings
		}
		endpoints = append(endpoints, endpoint)
	}
	selector := map[string]any{}
	for name, value := range exporterSelector(c.cluster) {
		selector[name] = value
	}
	out := podMonitorOf(c.cluster)
	out.SetLabels(c.labels(exporterComponent))
	fields := map[string]any{
		"selector": map[string]any{"matchLabels": selector}, "podMetricsEndpoints": endpoints,
		"namespaceSelector": map[string]any{"matchNames": []any{c.cluster.Namespace}},
	}
	if config.JobLabel != "" {
		fields["jobLabel"] = config.JobLabel
	}
	out.Object["spec"] = fields
	c.out.Add(out)
}

// relabelings decodes what goes to the PodMonitor unchanged.
func (c *composer) relabelings(list []embedded.Object, path string) []any {
	var out []any
	for i := range list {
		var fields map[string]any
		if err := json.Unmarshal(list[i].Raw, &fields); err != nil {
			c.fail(index(path, i), "%v", err)
			continue
		}
		out = append(out, fields)
	}
	return out
}

// labelsOfObject is the beginning of a labelmap's regex whose first group is a whole label or annotation of an object: its name begins
// with a letter or a digit.
var labelsOfObject = regexp.MustCompile(`^__meta_kubernetes_[a-z]+_(label|annotation)(present)?_\(([^?]|$)`)

// checkTarget refuses a relabeling that may change what Prometheus scrapes, and with which parameters. Prometheus reaches what the
// author of a SlurmCluster may not (https://prometheus.io/docs/prometheus/latest/configuration/configuration/#relabel_config).
func (c *composer) checkTarget(rule any, path string) {
	fields, _ := rule.(map[string]any)
	text := func(name string) string { value, _ := fields[name].(string); return value }
	switch strings.ToLower(text("action")) {
	case "", "replace", "hashmod", "lowercase", "uppercase":
		if target := text("targetLabel"); mayBeInternal(target) {
			c.fail(path+".targetLabel", "must not begin with __ (except __tmp) or with a capture group such as ${1}: such a label decides what Prometheus scrapes; it is %q", target)
		}
	case "labelmap":
		name, whole := text("replacement"), text("replacement") == "" || text("replacement") == "$1" || text("replacement") == "${1}"
		if whole && labelsOfObject.MatchString(text("regex")) {
			return
		}
		if whole || mayBeInternal(name) {
			c.fail(path+".replacement", "may make labels that begin with __, which decide what Prometheus scrapes: begin it with letters, such as pod_$1, "+
				"or the regex with a prefix such as __meta_kubernetes_pod_label_ and a group")
		}
	}
}

// mayBeInternal reports whether the name of a label, in which $ stands for parts of other labels, may be one of Prometheus' own.
func mayBeInternal(name string) bool {
	fixed, _, open := strings.Cut(name, "$")
	if strings.HasPrefix(fixed, "__") {
		return !strings.HasPrefix(fixed, "__tmp")
	}
	return open && (fixed == "" || fixed == "_")
}

func podMonitorOf(cluster *nebiusv1.SlurmCluster) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(PodMonitorKind)
	out.SetNamespace(cluster.Namespace)
	out.SetName(cluster.ExporterName())
	return out
}

// UnwantedPodMonitor is the PodMonitor that a cluster may still have from before; nil for none.
func (o *Output) UnwantedPodMonitor(cluster *nebiusv1.SlurmCluster, installed Installed) *unstructured.Unstructured {
	if !installed.PodMonitors.Usable() || o.Components.Exporter != nil || len(o.Problems) > 0 {
		return nil
	}
	return podMonitorOf(cluster)
}

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
