// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/testing/prometheus"
)

// scrapes is how often Prometheus scrapes, and rateInterval what Grafana makes of that for $__rate_interval.
const (
	scrapes      = time.Second
	rateInterval = "5s"
)

// patience is for a machine that is busy with other things: Prometheus gives up a scrape that takes a second.
const patience = 2 * time.Minute

// contains reports whether text has a part.
func contains(text []byte, part string) bool { return bytes.Contains(text, []byte(part)) }

// eventually calls until there is no error any more.
func eventually(t *testing.T, timeout time.Duration, holds func() error) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %v", timeout, err)
		}
		<-tick.C
	}
}

// A server is a running Prometheus.
type server struct{ *prometheus.Server }

// configuration scrapes a world as the objects of the Prometheus operator have it: labels namespace and job are those of the target, but for the
// operator, whose metrics have a namespace of their own (honorLabels).
const configuration = `
global: {scrape_interval: %[1]s, scrape_timeout: %[1]s, evaluation_interval: %[1]s}
rule_files: [%[2]q]
scrape_configs:
  - job_name: monitoring/demo-exporter
    static_configs: [{targets: [%[4]q, %[5]q], labels: {namespace: %[3]q}}]
  - job_name: demo-controller
    static_configs: [{targets: [%[6]q], labels: {namespace: %[3]q}}]
  - job_name: coxswain
    honor_labels: true
    static_configs: [{targets: [%[7]q], labels: {namespace: coxswain-system, pod: coxswain-0}}]
`

func startPrometheus(t *testing.T, w *world) *server {
	t.Helper()
	alerts, err := filepath.Abs(filepath.Join(files, "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	target := func(address string) string { return strings.TrimPrefix(address, "http://") }
	text := fmt.Sprintf(configuration, scrapes, alerts, w.namespace, target(w.cluster.URL), target(w.itself.URL), target(w.slurmctld.URL), target(w.operator.URL))
	return &server{prometheus.Start(t, text)}
}

// query returns what a query gives now: the labels of each series.
func (p *server) query(t *testing.T, expr string) []map[string]string {
	t.Helper()
	out, err := p.Query(t.Context(), expr)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// choose gives the variables of a dashboard the values that Grafana chooses: the first ones. The error names the one that has none.
func (p *server) choose(t *testing.T, d dashboard) (*strings.Replacer, error) {
	t.Helper()
	pairs := []string{"$__rate_interval", rateInterval, "$__range", "1h"}
	for _, v := range d.Templating.List {
		switch {
		case v.Type == "datasource":
		case v.AllValue != "":
			pairs = append(pairs, "$"+v.Name, v.AllValue)
		default:
			selector, label := v.query(t)
			values := map[string]bool{}
			for _, series := range p.query(t, strings.NewReplacer(pairs...).Replace(selector)) {
				values[series[label]] = true
			}
			delete(values, "")
			if len(values) == 0 {
				return nil, fmt.Errorf("variable %s has no value", v.Name)
			}
			order := cmp.Compare[string]
			if v.Sort == newestFirst {
				order = func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(b, a)) }
			}
			pairs = append(pairs, "$"+v.Name, slices.SortedFunc(maps.Keys(values), order)[0])
		}
	}
	return strings.NewReplacer(pairs...), nil
}

// empty returns the panels whose queries give nothing now. What stands there for nothing ("or vector(0)") does not count.
func (p *server) empty(t *testing.T, d dashboard) []string {
	t.Helper()
	values, err := p.choose(t, d)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			expr := strings.TrimSuffix(values.Replace(target.Expr), " or vector(0)")
			if len(p.query(t, expr)) == 0 {
				out = append(out, fmt.Sprintf("panel %q: %s", panel.Title, expr))
			}
		}
	}
	return out
}

// TestNoPanelIsEmpty runs every query of every dashboard on a Prometheus that scrapes an exporter, an operator and recorded answers of a
// slurmctld. The same Prometheus evaluates the alerts.
func TestNoPanelIsEmpty(t *testing.T) {
	program(t, "prometheus")
	p := startPrometheus(t, startWorld(t))
	for file, d := range readDashboards(t) {
		t.Run(file, func(t *testing.T) {
			eventually(t, patience, func() error {
				if empty := p.empty(t, d); len(empty) > 0 {
					return fmt.Errorf("nothing is in\n%s", strings.Join(empty, "\n"))
				}
				return nil
			})
		})
	}
	t.Run("alerts", func(t *testing.T) { p.expectAlerts(t) })
}

// expectAlerts checks that Prometheus can evaluate every alert, and that those fire, or will, whose cause the world has.
func (p *server) expectAlerts(t *testing.T) {
	t.Helper()
	caused := []string{
		"SlurmExporterSeriesDropped", "SlurmNodeDown", "SlurmNodeDrainedByCheck", "SlurmNodeDrainedLong", "SlurmNodesUnavailable",
	}
	eventually(t, patience, func() error {
		rules, err := p.Rules(t.Context())
		if err != nil {
			return err
		}
		var active []string
		for _, r := range rules {
			if r.Health != "ok" {
				return fmt.Errorf("alert %s is %s: %s", r.Name, r.Health, r.LastError)
			}
			if r.State != "inactive" {
				active = append(active, r.Name)
			}
		}
		if slices.Sort(active); !slices.Equal(active, caused) || len(rules) != len(readRules(t).all()) {
			return fmt.Errorf("%d alerts are known, and pending or firing are %v, want %v", len(rules), active, caused)
		}
		return nil
	})
}
