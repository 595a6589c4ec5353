// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-hpc/coxswain/internal/testing/prometheus"
	"github.com/coxswain-hpc/coxswain/test/walk"
)

// isObserved has a Prometheus scrape what the objects of the Prometheus operator lead it to, and the operator. An alert of the chart fires as
// long as a check has drained worker big-0.
func (s *scene) isObserved(t *testing.T) {
	server := prometheus.Start(t, s.prometheusConfiguration(t))
	// On a busy machine slurmrestd is slow, and the exporter takes a hundredth of its time only.
	eventually(t, patient, "Prometheus to know slurmctld, the exporter and the operator", func(ctx context.Context) error {
		var errs []error
		for _, expr := range []string{
			`slurm_nodes{namespace="NS"}`, `slurm_partition_nodes{namespace="NS",partition="second"} == 1`,
			`slurm_node_info{namespace="NS",node_name="big-0",state_base="IDLE"}`, `slurm_job_info{namespace="NS",slurm_partition="second"}`,
			`slurm_exporter_collector_age_seconds{namespace="NS",collector="jobs"} < 300`,
			`coxswain_slurm_trust{namespace="NS",trust="Fresh"} == 1`,
		} {
			expr = strings.ReplaceAll(expr, "NS", s.namespace)
			series, err := server.Query(ctx, expr)
			if err == nil && len(series) == 0 {
				err = fmt.Errorf("nothing is in %s", expr)
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
	s.expectAlert(t, server, false)

	began := time.Now()
	if _, err := s.worker(t.Context(), "touch /mnt/jail/flag"); err != nil {
		t.Fatal(err)
	}
	id, err := s.slurm(t.Context(), "sbatch", "--parsable", "--partition=second", "--output=/dev/null", "--wrap=true")
	if err != nil {
		t.Fatal(err)
	}
	s.expectAlert(t, server, true)
	t.Logf("the alert fires %.1f s after its cause", time.Since(began).Seconds())
	began = time.Now()
	if out, err := s.worker(t.Context(), "rm /mnt/jail/flag"); err != nil {
		t.Fatalf("taking the cause away: %v: %s", err, out)
	}
	// An alert is also over while a busy exporter misses a scrape: the next tests need the worker itself.
	s.slurmShows(t, "scontrol show node big-0", "State=IDLE+DYNAMIC_NORM ")
	s.saysOutOfService(t, "demo-big-0", "")
	s.expectAlert(t, server, false)
	t.Logf("the alert is over %.1f s after the cause was gone", time.Since(began).Seconds())
	if out, err := s.slurm(t.Context(), "scancel", strings.TrimSpace(id)); err != nil {
		t.Fatalf("canceling job %s: %v: %s", id, err, out)
	}
}

// expectAlert waits until the alert about a node that a check has drained fires for big-0, or does not.
func (s *scene) expectAlert(t *testing.T, server *prometheus.Server, fires bool) {
	t.Helper()
	const name = "SlurmNodeDrainedByCheck"
	eventually(t, 4*soon, fmt.Sprintf("alert %s, firing: %t", name, fires), func(ctx context.Context) error {
		rules, err := server.Rules(ctx)
		if err != nil {
			return err
		}
		known := false
		for _, r := range rules {
			if r.Health != "ok" {
				return fmt.Errorf("alert %s is %s: %s", r.Name, r.Health, r.LastError)
			}
			known = known || r.Name == name
			for _, a := range r.Alerts {
				if r.Name == name && a.State == "firing" && a.Labels["namespace"] == s.namespace {
					if !fires || a.Labels["node_name"] != "big-0" || !strings.HasPrefix(a.Labels["reason"], "[user_problem] flag: ") {
						return fmt.Errorf("it fires for %v", a.Labels)
					}
					return nil
				}
			}
		}
		if fires || !known {
			return fmt.Errorf("it does not fire; %d rules are known", len(rules))
		}
		return nil
	})
}

// prometheusConfiguration returns what the Prometheus operator makes of the objects in the scene: names, ports, paths, intervals and
// relabelings are theirs. The alerts are those of the chart, but fire at once.
func (s *scene) prometheusConfiguration(t *testing.T) string {
	t.Helper()
	var configs []any
	for _, kind := range []string{"PodMonitor", "ServiceMonitor"} {
		var monitors []unstructured.Unstructured
		eventually(t, soon, "a "+kind, func(ctx context.Context) error {
			var err error
			monitors, err = s.monitors(ctx, kind)
			if err == nil && len(monitors) != 1 {
				err = fmt.Errorf("there are %d", len(monitors))
			}
			return err
		})
		for i := range monitors {
			configs = append(configs, s.scrapeConfigs(t, &monitors[i])...)
		}
	}
	configs = append(configs, s.operatorScrapeConfig(t))
	text, err := os.ReadFile(stage.repository.Path("helm", "coxswain", "files", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	rules := filepath.Join(t.TempDir(), "alerts.yaml")
	if err := os.WriteFile(rules, regexp.MustCompile(`(?m)^( +for:) .*$`).ReplaceAll(text, []byte("$1 0s")), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := yaml.Marshal(map[string]any{
		"global": map[string]any{"evaluation_interval": "1s"}, "rule_files": []string{rules}, "scrape_configs": configs,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func (s *scene) monitors(ctx context.Context, kind string) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: kind + "List"})
	err := s.List(ctx, list, client.InNamespace(s.namespace))
	return list.Items, err
}

// scrapeConfigs returns the scrape configurations of the endpoints of a monitor.
func (s *scene) scrapeConfigs(t *testing.T, monitor *unstructured.Unstructured) (configs []any) {
	t.Helper()
	field := "endpoints"
	if monitor.GetKind() == "PodMonitor" {
		field = "podMetricsEndpoints"
	}
	endpoints, _, _ := unstructured.NestedSlice(monitor.Object, "spec", field)
	labels, _, _ := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	for i, e := range endpoints {
		endpoint, _ := e.(map[string]any)
		port, _ := endpoint["port"].(string)
		config := map[string]any{
			"job_name":       fmt.Sprintf("%s/%s/%s/%d", monitor.GetKind(), monitor.GetNamespace(), monitor.GetName(), i),
			"static_configs": []any{map[string]any{"targets": s.targets(t, monitor.GetKind(), labels, port), "labels": map[string]any{"namespace": s.namespace}}},
			"metrics_path":   endpoint["path"], "scrape_interval": endpoint["interval"], "scrape_timeout": endpoint["scrapeTimeout"],
		}
		if relabelings, ok := endpoint["metricRelabelings"]; ok {
			config["metric_relabel_configs"] = relabelings // the keys of these are one word each
		}
		for _, name := range []string{"scrape_interval", "scrape_timeout"} {
			config[name] = "2s" // theirs is for clusters that change less
		}
		configs = append(configs, config)
	}
	if len(configs) == 0 {
		t.Fatalf("%s %s has no endpoints", monitor.GetKind(), monitor.GetName())
	}
	return configs
}

// targets returns the addresses of a port of what a monitor selects.
func (s *scene) targets(t *testing.T, kind string, labels map[string]string, port string) (out []string) {
	t.Helper()
	selected := []client.ListOption{client.InNamespace(s.namespace), client.MatchingLabels(labels)}
	if kind == "PodMonitor" {
		var pods corev1.PodList
		if err := s.List(t.Context(), &pods, selected...); err != nil {
			t.Fatal(err)
		}
		for _, p := range pods.Items {
			for _, c := range p.Spec.Containers {
				for _, has := range c.Ports {
					if has.Name == port {
						out = append(out, fmt.Sprintf("%s:%d", p.Status.PodIP, has.ContainerPort))
					}
				}
			}
		}
	} else {
		var services corev1.ServiceList
		if err := s.List(t.Context(), &services, selected...); err != nil {
			t.Fatal(err)
		}
		for _, service := range services.Items {
			for _, has := range service.Spec.Ports {
				if has.Name == port {
					out = append(out, fmt.Sprintf("%s:%d", service.Spec.ClusterIP, has.Port))
				}
			}
		}
	}
	if len(out) != 1 {
		t.Fatalf("a %s leads to %v with port %s of %v", kind, out, port, labels)
	}
	return out
}

// operatorScrapeConfig scrapes the operator as a Prometheus does that may read its metrics.
func (s *scene) operatorScrapeConfig(t *testing.T) any {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-metrics"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: metricsReader},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: "observer"}},
	}
	if err := errors.Join(client.IgnoreNotFound(s.Delete(t.Context(), binding.DeepCopy())), s.Create(t.Context(), binding)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Delete(context.WithoutCancel(t.Context()), binding) })
	var service corev1.Service
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: walk.Operator.Namespace, Name: walk.Operator.Name}, &service); err != nil {
		t.Fatal(err)
	}
	return map[string]any{
		"job_name": "coxswain", "scheme": "https", "honor_labels": true, "scrape_interval": "2s", "scrape_timeout": "2s",
		"tls_config":     map[string]any{"insecure_skip_verify": true},
		"authorization":  map[string]any{"credentials": s.account(t, "observer")},
		"static_configs": []any{map[string]any{"targets": []string{service.Spec.ClusterIP + ":8443"}}},
	}
}
