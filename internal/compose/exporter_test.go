// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	"github.com/coxswain-hpc/coxswain/internal/kube/foreignkind"
)

func exporting(change func(*nebiusv1.SlurmCluster)) Input {
	c := &nebiusv1.SlurmCluster{}
	c.Name, c.Namespace = "demo", "slurm"
	c.Spec.SlurmNodes.Exporter = nebiusv1.Exporter{
		Enabled: true, CollectionInterval: "30s", JobSource: "controller", AccountingJobsLookback: "1h", MaxCollectorInflight: 1,
		PodMonitorConfig: nebiusv1.PodMonitorConfig{JobLabel: "slurm-exporter", Interval: "30s", ScrapeTimeout: "20s"},
	}
	if change != nil {
		change(c)
	}
	return Input{Cluster: c, Observed: Observed{Installed: AllInstalled()}}
}

func podMonitorIn(out Output) *unstructured.Unstructured {
	for _, o := range out.Objects {
		if u, ok := o.(*unstructured.Unstructured); ok && u.GroupVersionKind() == PodMonitorKind {
			return u
		}
	}
	return nil
}

func TestTheExporterRunsWhereItCanAskSlurm(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*nebiusv1.SlurmCluster)
		want   int32 // -1 without a Deployment
	}{
		"the exporter is asked for":     {want: 1},
		"the exporter is not asked for": {want: -1, change: func(c *nebiusv1.SlurmCluster) { c.Spec.SlurmNodes.Exporter.Enabled = false }},
		"an exporter of the first generation is asked for": {want: -1, change: func(c *nebiusv1.SlurmCluster) {
			c.Spec.SlurmNodes.Exporter.Exporter = &nebiusv1.LegacyExporter{NodeContainer: nebiusv1.NodeContainer{Image: "old"}} //nolint:staticcheck // that is the point
		}},
		"maintenance": {want: 0, change: func(c *nebiusv1.SlurmCluster) { c.Spec.Maintenance = nebiusv1.MaintenanceDownscale }},
	} {
		t.Run(name, func(t *testing.T) {
			in := exporting(test.change)
			out := Cluster(in)
			got := int32(-1)
			if d := out.Components.Exporter; d != nil {
				got = *d.Spec.Replicas
			}
			if got != test.want || len(out.Problems) > 0 {
				t.Errorf("%d pods, want %d; problems: %s", got, test.want, out.Problems.Message())
			}
			// What is not composed goes.
			unwanted := out.UnwantedPodMonitor(in.Cluster, in.Observed.Installed)
			if (unwanted != nil) != (test.want < 0) || (podMonitorIn(out) != nil) != (test.want >= 0) {
				t.Errorf("composed: %v, unwanted: %v", podMonitorIn(out), unwanted)
			}
		})
	}
}

func TestTheExportersProgramGetsWhatTheSpecSays(t *testing.T) {
	for name, test := range map[string]struct {
		change       func(*nebiusv1.SlurmCluster)
		args         []string // beside those that are always there
		problem      string
		withoutTrace []string
	}{
		"defaults": {args: []string{"--collection-interval=30s", "--max-collector-inflight=1"}},
		"a port of its own": {
			change: func(c *nebiusv1.SlurmCluster) { c.Spec.SlurmNodes.Exporter.ExporterContainer.Port = 9341 },
			args:   []string{"--metrics-bind-address=:9341", "--collection-interval=30s", "--max-collector-inflight=1"},
		},
		"the port where the exporter serves metrics of itself": {
			change:  func(c *nebiusv1.SlurmCluster) { c.Spec.SlurmNodes.Exporter.ExporterContainer.Port = 8081 },
			problem: "spec.slurmNodes.exporter.exporterContainer.port: must not be 8081, where the exporter serves metrics of itself",
		},
		"an interval that is too short": {
			change:  func(c *nebiusv1.SlurmCluster) { c.Spec.SlurmNodes.Exporter.CollectionInterval = "500ms" },
			problem: "spec.slurmNodes.exporter.collectionInterval: must be at least 1s, such as 30s",
		},
		"jobs of slurmdbd": {
			change: func(c *nebiusv1.SlurmCluster) {
				c.Spec.SlurmNodes.Exporter.JobSource = "accounting"
				c.Spec.SlurmNodes.Accounting = nebiusv1.Accounting{Enabled: true, EmbeddedDB: &nebiusv1.EmbeddedDB{Enabled: true}}
			},
			args: []string{"--collection-interval=30s", "--max-collector-inflight=1", "--job-source=accounting", "--accounting-jobs-lookback=1h"},
		},
		"jobs of slurmdbd without accounting": {
			change:       func(c *nebiusv1.SlurmCluster) { c.Spec.SlurmNodes.Exporter.JobSource = "accounting" },
			args:         []string{"--collection-interval=30s", "--max-collector-inflight=1"},
			withoutTrace: []string{"spec.slurmNodes.exporter.jobSource (without slurmNodes.accounting; jobs are read from slurmctld)"},
		},
		"a node filter that is not there runs it anywhere": {
			change:       func(c *nebiusv1.SlurmCluster) { c.Spec.SlurmNodes.Exporter.K8sNodeFilterName = "cpu" },
			args:         []string{"--collection-interval=30s", "--max-collector-inflight=1"},
			withoutTrace: []string{"spec.slurmNodes.exporter.k8sNodeFilterName"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := Cluster(exporting(test.change))
			if got := out.Problems.Message(); got != test.problem {
				t.Fatalf("problems %q, want %q", got, test.problem)
			}
			if test.problem != "" {
				return
			}
			container := out.Components.Exporter.Spec.Template.Spec.Containers[0]
			always := []string{"--cluster-namespace=slurm", "--cluster-name=demo", "--slurm-api-server=http://demo-restapi.slurm:6820", "--token-file=/etc/exporter/SLURM_JWT"}
			if diff := cmp.Diff(append(always, test.args...), container.Args); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.withoutTrace, out.Ignored); diff != "" {
				t.Error(diff)
			}
			port := slices.IndexFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.Name == "metrics" })
			if want := slices.ContainsFunc(container.Args, func(a string) bool { return strings.HasSuffix(a, ":9341") }); (container.Ports[port].ContainerPort == 9341) != want {
				t.Errorf("the port of the pod is %d", container.Ports[port].ContainerPort)
			}
		})
	}
}

func TestNoRelabelingChangesWhatPrometheusScrapes(t *testing.T) {
	for rule, field := range map[string]string{
		`{"targetLabel": "__address__", "replacement": "10.0.0.1:80"}`:                                            "targetLabel",
		`{"action": "Replace", "targetLabel": "__scheme__", "replacement": "https"}`:                              "targetLabel",
		`{"action": "hashmod", "modulus": 2, "targetLabel": "__param_x"}`:                                         "targetLabel",
		`{"action": "Lowercase", "targetLabel": "__metrics_path__"}`:                                              "targetLabel",
		`{"sourceLabels": ["__meta_kubernetes_pod_annotation_x"], "targetLabel": "$1"}`:                           "targetLabel",
		`{"sourceLabels": ["__meta_kubernetes_pod_annotation_x"], "targetLabel": "_${1}"}`:                        "targetLabel",
		`{"action": "labelmap", "regex": "__meta_kubernetes_pod_annotation_x", "replacement": "__address__"}`:     "replacement",
		`{"action": "LabelMap", "regex": "__meta_kubernetes_pod_annotation_x(.+)"}`:                               "replacement",
		`{"action": "labelmap", "regex": "__meta_kubernetes_pod_annotation_(?:x(.+))"}`:                           "replacement",
		`{"action": "labelmap", "regex": "__meta_kubernetes_pod_annotation_()x", "replacement": "$1__address__"}`: "replacement",
		`{"targetLabel": "__tmp_x"}`:                                                                                     "",
		`{"targetLabel": "cluster", "replacement": "demo"}`:                                                              "",
		`{"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node_$1"}`:                                "",
		`{"action": "labelmap", "regex": "__meta_kubernetes_pod_label_(.+)"}`:                                            "",
		`{"action": "labelmap", "regex": "__meta_kubernetes_pod_annotation_x(.+)", "replacement": "pod_$1"}`:             "",
		`{"action": "labeldrop", "regex": "__meta_.+"}`:                                                                  "",
		`{"action": "keep", "sourceLabels": ["__meta_kubernetes_pod_label_x"], "regex": "y", "targetLabel": "whatever"}`: "",
	} {
		own := embedded.Object{}
		own.Raw = []byte(rule)
		in := exporting(func(c *nebiusv1.SlurmCluster) {
			c.Spec.SlurmNodes.Exporter.PodMonitorConfig.RelabelConfig = []embedded.Object{own}
		})
		want := ""
		if field != "" {
			want = "spec.slurmNodes.exporter.podMonitorConfig.relabelConfig[0]." + field + ": "
		}
		for _, in.Observed.Installed.PodMonitors = range []foreignkind.Fit{{Installed: true}, {}} {
			if got := Cluster(in).Problems.Message(); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
				t.Errorf("%s: %q, want %q", rule, got, want)
			}
		}
	}
}

func TestPrometheusScrapesTheExporter(t *testing.T) {
	in := exporting(func(c *nebiusv1.SlurmCluster) {
		own := embedded.Object{}
		own.Raw = []byte(`{"action": "drop", "regex": "slurm_job_info"}`)
		c.Spec.SlurmNodes.Exporter.PodMonitorConfig.MetricRelabelConfigs = []embedded.Object{own}
	})
	out := Cluster(in)
	endpoint := func(port string) any {
		return map[string]any{
			"port": port, "path": "/metrics", "interval": "30s", "scrapeTimeout": "20s",
			"metricRelabelings": []any{
				map[string]any{"action": "labeldrop", "regex": "pod|instance|container"},
				map[string]any{"action": "drop", "regex": "slurm_job_info"},
			},
		}
	}
	want := map[string]any{
		"jobLabel":            "slurm-exporter",
		"namespaceSelector":   map[string]any{"matchNames": []any{"slurm"}},
		"podMetricsEndpoints": []any{endpoint("metrics"), endpoint("monitoring")},
	}
	spec, _ := podMonitorIn(out).Object["spec"].(map[string]any)
	selector, _, _ := unstructured.NestedStringMap(spec, "selector", "matchLabels")
	for name, value := range selector {
		if out.Components.Exporter.Spec.Template.Labels[name] != value {
			t.Errorf("the pods do not have label %s=%s", name, value)
		}
	}
	delete(spec, "selector")
	if diff := cmp.Diff(want, spec); diff != "" || len(selector) != 3 {
		t.Error(diff, selector)
	}
	in.Observed.Installed.PodMonitors = foreignkind.Fit{}
	out = Cluster(in)
	if diff := cmp.Diff([]string{"spec.slurmNodes.exporter.podMonitorConfig (the cluster has no CRD podmonitors.monitoring.coreos.com)"}, out.Ignored); diff != "" || podMonitorIn(out) != nil {
		t.Error(diff, podMonitorIn(out))
	}
	if got := out.UnwantedPodMonitor(in.Cluster, in.Observed.Installed); got != nil {
		t.Errorf("unwanted: %v", got)
	}
}
