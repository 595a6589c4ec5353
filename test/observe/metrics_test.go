// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/utils/clock"
	_ "sigs.k8s.io/controller-runtime/pkg/manager" // which registers metrics
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/health/budget"
	"github.com/coxswain-hpc/coxswain/internal/observe/exporter"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// known are the labels of metrics.
type known map[string][]string

// describe adds what a collector may collect.
func (k known) describe(t *testing.T, c prometheus.Collector) {
	t.Helper()
	described := make(chan *prometheus.Desc)
	go func() {
		c.Describe(described)
		close(described)
	}()
	form := regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)
	for desc := range described {
		match := form.FindStringSubmatch(desc.String())
		if match == nil {
			t.Fatalf("%s is not in the form that this test reads", desc)
		}
		k[match[1]] = strings.Split(match[2], ",")
	}
}

// text adds what is in Prometheus' text format.
func (k known) text(t *testing.T, text []byte) {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil || len(families) < 10 {
		t.Fatalf("there are %d metrics, %v", len(families), err)
	}
	for name, f := range families {
		for _, m := range f.Metric {
			for _, l := range m.Label {
				k[name] = append(k[name], l.GetName())
			}
		}
		k[name] = append(k[name], "") // it is known without labels, too
	}
}

// has reports whether a metric is there, and its labels.
func (k known) has(metric string) (labels []string, ok bool) {
	if labels, ok = k[metric]; ok {
		return labels, true
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, is := strings.CutSuffix(metric, suffix); is {
			if labels, ok = k[base]; ok {
				return append(slices.Clone(labels), "le"), true
			}
		}
	}
	return nil, false
}

// two is a cluster with two nodes.
type two struct{ at time.Time }

// Snapshot is part of exporter.Source.
func (s two) Snapshot() *slurmcache.Snapshot {
	return slurmcache.NewSnapshot(s.at, slurmcache.Fresh, rest.Node{Name: "a", State: []string{"IDLE"}}, rest.Node{Name: "b", State: []string{"IDLE"}})
}

// CollectJobs is part of exporter.Source.
func (s two) CollectJobs(context.Context) (slurmcache.JobRecords, error) {
	return slurmcache.JobRecords{Taken: s.at}, nil
}

// CollectAccountingJobs is part of exporter.Source.
func (s two) CollectAccountingJobs(context.Context, time.Duration) (slurmcache.JobRecords, error) {
	return slurmcache.JobRecords{Taken: s.at}, nil
}

// CollectDiag is part of exporter.Source.
func (s two) CollectDiag(context.Context) (rest.Diag, time.Time, error) {
	return rest.Diag{}, s.at, nil
}

// ofTheExporter returns the metrics of an exporter itself that shows one series of each metric and drops the others.
func ofTheExporter(t *testing.T) (text []byte) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := exporter.New(two{time.Now()}, exporter.Options{Interval: time.Minute, Text: exporter.TextOptions{MaxSeries: 1}})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			e.Run(ctx)
		}()
		synctest.Wait()
		answer := httptest.NewRecorder()
		e.Monitoring().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		text = answer.Body.Bytes()
		stop()
		<-ended
	})
	return text
}

// everything returns what the exporter, the operator and slurmctld have.
func everything(t *testing.T) known {
	t.Helper()
	k := known{}
	k.text(t, read(t, filepath.Join("..", "..", "internal", "observe", "exporter", "testdata", "cluster.txt")))
	k.text(t, ofTheExporter(t))
	k.text(t, read(t, filepath.Join("testdata", "slurmctld.txt")))
	k.describe(t, slurmcache.NewRegistry(slurmcache.Options{}))
	k.describe(t, nodeset.Metrics(nil, budget.New(health.DrainLimit{}, clock.RealClock{})))
	registry, ok := metrics.Registry.(prometheus.Collector)
	if !ok {
		t.Fatalf("controller-runtime's registry is a %T, which does not tell what it has", metrics.Registry)
	}
	k.describe(t, registry)
	return k
}

func TestEveryMetricExists(t *testing.T) {
	k := everything(t)
	count := 0
	for _, q := range queries(t) {
		found := selectors(q.expr)
		if len(found) == 0 {
			t.Errorf("%s asks for no metric: %s", q.of, q.expr)
		}
		for _, s := range found {
			count++
			labels, ok := k.has(s.metric)
			if !ok {
				t.Errorf("%s has metric %s, which neither exporter nor operator nor slurmctld has: %s", q.of, s.metric, q.expr)
				continue
			}
			for _, label := range s.labels {
				if !slices.Contains(labels, label) && label != "namespace" && label != "job" { // Prometheus adds these
					t.Errorf("%s has %s{%s}, and the labels are %v: %s", q.of, s.metric, label, labels, q.expr)
				}
			}
		}
	}
	if count < 150 {
		t.Errorf("only %d metrics were found", count)
	}
}

func TestWhatIsUnknownIsFound(t *testing.T) {
	k := everything(t)
	for _, metric := range []string{"slurm_node_inf", "slurm_node_info_total", "coxswain_slurm", "le", ""} {
		if _, ok := k.has(metric); ok {
			t.Errorf("%q is taken for a metric", metric)
		}
	}
	for metric, label := range map[string]string{
		"slurm_node_info": "state_base", "slurm_exporter_series_dropped_total": "metric", "slurm_user_jobs_running": "username",
		"coxswain_slurm_call_duration_seconds_bucket": "le", "coxswain_nodes_out_of_service": "reason", "workqueue_depth": "name",
	} {
		if labels, ok := k.has(metric); !ok || !slices.Contains(labels, label) || slices.Contains(labels, "nonsense") {
			t.Errorf("%s has labels %v, %v", metric, labels, ok)
		}
	}
}

// TestSlurmctldsMetricsAreWhole keeps testdata/slurmctld.txt as it was recorded: every metric of each of slurmctld's paths, with a sample.
func TestSlurmctldsMetricsAreWhole(t *testing.T) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(read(t, filepath.Join("testdata", "slurmctld.txt"))))
	if err != nil {
		t.Fatal(err)
	}
	// The first word of a name, without a plural's s, tells the path; names of /metrics/scheduler have many.
	want := map[string]int{"job": 30, "node": 38, "partition": 73, "user": 30, "account": 30, "scheduler": 58}
	have := map[string]int{}
	for name, family := range families {
		if len(family.Metric) == 0 {
			t.Errorf("%s has no sample", name)
		}
		about := strings.TrimSuffix(strings.Split(name, "_")[1], "s")
		if _, ok := want[about]; !ok {
			about = "scheduler"
		}
		have[about]++
	}
	if !maps.Equal(have, want) {
		t.Errorf("there are so many metrics: %v, want %v", have, want)
	}
}
