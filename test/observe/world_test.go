// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/observe/exporter"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	slurmtoken "github.com/coxswain-hpc/coxswain/internal/slurm/token"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// A world is a Slurm with nodes and jobs of many kinds, an operator of some of its nodes, and an exporter.
type world struct {
	namespace string
	slurm     *fake.Slurm
	// cluster and itself are what the exporter serves; operator and slurmctld have the metrics of these.
	cluster, itself, operator, slurmctld *httptest.Server
}

// collections is how often the exporter collects. Prometheus sees the history of a node by what the exporter sees of it.
const collections = 200 * time.Millisecond

// talkative is a Slurm cache of a slurmctld that has been called: the fake one counts no calls.
type talkative struct {
	*slurmcache.Cache
	calls *atomic.Int64
}

// CollectDiag is part of exporter.Source.
func (s talkative) CollectDiag(ctx context.Context) (rest.Diag, time.Time, error) {
	d, taken, err := s.Cache.CollectDiag(ctx)
	n := s.calls.Add(10)
	d.ByMessage = []rest.Calls{{Name: "REQUEST_PING", ID: 1008, Count: n, Took: time.Duration(n) * time.Millisecond}}
	d.ByUser = []rest.Calls{{Name: "root", Count: n, Took: time.Duration(n) * time.Millisecond}}
	return d, taken, err
}

func startWorld(t *testing.T) *world {
	t.Helper()
	o, nodes := operator.StartWorkersOn(t, 3, `template: {spec: {hostname: w-}}`)
	registry := prometheus.NewRegistry()
	o.Metrics = registry
	o.Restart()
	w := &world{namespace: o.Namespace, slurm: o.Slurm}
	w.operator = serve(t, promhttp.HandlerFor(prometheus.Gatherers{registry, metrics.Registry}, promhttp.HandlerOpts{}))
	w.slurmctld = serve(t, http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		http.ServeFile(out, r, filepath.Join("testdata", "slurmctld.txt"))
	}))
	w.populate(t)
	o.SetKubeNodeCondition(nodes[0], health.DefaultMaintenanceType, corev1.ConditionTrue) // so that the operator drains a worker
	w.export(t)
	return w
}

func serve(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

// populate makes nodes and jobs. Node a-0 is the first by name, which dashboards show first, and so is alice among users.
func (w *world) populate(t *testing.T) {
	t.Helper()
	first := fake.Node{Name: "a-0", CPUs: 64, RealMemory: 512000, Gres: "gpu:8"}
	for i := range 20 {
		first.Partitions = append(first.Partitions, fmt.Sprintf("p-%d", i))
	}
	first.Partitions = append(first.Partitions, "main")
	w.slurm.Register(first, fake.Node{Name: "b-0", Gres: "gpu:8"}, fake.Node{Name: "c-0"}, fake.Node{Name: "d-0"})
	w.slurm.SubmitAll(
		fake.Job{Name: "train", User: "alice", NodeList: []string{"a-0"}, CPUs: 8},
		fake.Job{Name: "train", User: "alice", NodeList: []string{"w-0"}, CPUs: 8},
		fake.Job{Name: "large", User: "bob", Nodes: 50},
	)
	w.update(t, "b-0", "DRAIN", "[node_problem] gpu: Xid 79")
	w.update(t, "w-1", "DRAIN", "[hardware_problem] fan")
	w.update(t, "w-2", "DRAIN", "new cables")
	w.slurm.Lose("c-0")
	now := time.Now()
	cooling := fake.Reservation{Name: "cooling", Start: now, End: now.Add(time.Hour), Nodes: []string{"d-0"}, Users: []string{"root"}, Flags: []string{"MAINT"}}
	if err := w.slurm.Reserve(cooling); err != nil {
		t.Fatal(err)
	}
}

func (w *world) update(t *testing.T, node, state, reason string) {
	t.Helper()
	if err := w.slurm.Update("root", node, state, reason); err != nil {
		t.Fatal(err)
	}
}

// export runs an exporter, and lets something happen to node a-0 that it sees.
func (w *world) export(t *testing.T) {
	t.Helper()
	issuer, err := slurmtoken.NewStatic("a.b.c")
	if err != nil {
		t.Fatal(err)
	}
	caches := slurmcache.NewRegistry(slurmcache.Options{Transport: w.slurm.Transport(), Interval: collections / 4})
	t.Cleanup(caches.Close)
	l, err := caches.Set(slurmcache.Key{Namespace: w.namespace, Name: "demo"}, slurmcache.Config{Endpoint: "http://slurm:6820", Issuer: issuer})
	if err != nil {
		t.Fatal(err)
	}
	// a-0 has more partitions than may be shown.
	e := exporter.New(talkative{l, new(atomic.Int64)}, exporter.Options{Interval: collections, Text: exporter.TextOptions{MaxSeries: 16}})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	w.cluster, w.itself = serve(t, e.Metrics()), serve(t, e.Monitoring())
	w.await(t, `slurm_node_info{node_name="a-0"`)
	w.update(t, "a-0", "DRAIN", "[node_problem] disk")
	w.await(t, `slurm_node_fails_total{node_name="a-0"`)
	w.slurm.Finish(1)
	w.await(t, `slurm_node_draining_duration_seconds_count{node_name="a-0"`)
	w.update(t, "a-0", "RESUME", "")
	w.await(t, `slurm_node_unavailability_duration_seconds_count{node_name="a-0"`)
	w.slurm.Submit(fake.Job{Name: "train", User: "alice", NodeList: []string{"a-0"}, CPUs: 8})
	w.await(t, `slurm_node_job{job_id="4",node_name="a-0"`)
}

// await waits until the exporter shows a series.
func (w *world) await(t *testing.T, series string) {
	t.Helper()
	eventually(t, patience, func() error {
		text, err := get(t, w.cluster.URL+"/metrics")
		if err == nil && !contains(text, "\n"+series) {
			err = fmt.Errorf("the exporter does not show %s:\n%s", series, text)
		}
		return err
	})
}

// get returns the body of an answer.
func get(t *testing.T, address string) ([]byte, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", address, answer.Status, body)
	}
	return body, err
}
