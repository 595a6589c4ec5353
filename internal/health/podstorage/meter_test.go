// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package podstorage

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/health/budget"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

// aWorker returns a worker that runs on a Kubernetes node of this machine, with a limit of 1000 bytes, or none.
func aWorker(t *testing.T, name, kubeNode string, limited bool) *corev1.Pod {
	t.Helper()
	limit := ""
	if limited {
		limit = `, resources: {limits: {ephemeral-storage: "1000"}}`
	}
	return manifest.Parse[corev1.Pod](t, fmt.Sprintf(`
metadata:
  name: %s
  namespace: slurm
  uid: uid-%s
  labels: {slinky.slurm.net/cluster: demo}
  ownerReferences: [{apiVersion: slinky.slurm.net/v1beta1, kind: NodeSet, name: w, uid: u, controller: true}]
spec: {nodeName: %s, hostname: %s, containers: [{name: slurmd%s}]}
status: {phase: Running, hostIP: 127.0.0.1}
`, name, name, kubeNode, name, limit))
}

// measured is a Meter of these pods, with what kubelets answer and what the Meter logs.
type measured struct {
	*Meter
	ctx   context.Context
	mu    sync.Mutex
	asked int
	body  string
	lines []string
}

func newMeasured(t *testing.T, pods ...client.Object) *measured {
	t.Helper()
	m := &measured{}
	port, caFile := aKubelet(t, func(w http.ResponseWriter, _ *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.asked++
		_, _ = w.Write([]byte(m.body))
	})
	o := Options{
		Thresholds: health.StorageThresholds{Drain: 85, Resume: 80}, Interval: time.Millisecond,
		Kubelet: KubeletOptions{Port: port, CAFile: caFile, RequestTimeout: 10 * time.Second},
	}
	var err error
	if m.Meter, err = New(&rest.Config{}, o, fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(pods...).Build(),
		nil, slurmcache.NewRegistry(slurmcache.Options{}), budget.New(health.DrainLimit{Number: 1}, clock.RealClock{}), clock.RealClock{}); err != nil {
		t.Fatal(err)
	}
	m.ctx = log.IntoContext(t.Context(), funcr.New(func(_, args string) { m.lines = append(m.lines, args) }, funcr.Options{}))
	return m
}

// once measures once while kubelets answer this.
func (m *measured) once(t *testing.T, body string) {
	t.Helper()
	m.mu.Lock()
	m.body, m.asked = body, 0
	m.mu.Unlock()
	if err := m.measure(m.ctx); err != nil {
		t.Fatal(err)
	}
}

func says(uid string, used int) string {
	return fmt.Sprintf(`{"pods": [{"podRef": {"uid": %q}, "ephemeral-storage": {"usedBytes": %d}}]}`, uid, used)
}

func TestEachKubernetesNodeIsAskedOnce(t *testing.T) {
	pending := aWorker(t, "w-4", "node-d", true)
	pending.Status.Phase = corev1.PodPending
	m := newMeasured(t, aWorker(t, "w-0", "node-a", true), aWorker(t, "w-1", "node-a", true), aWorker(t, "w-2", "node-b", true), aWorker(t, "w-3", "node-c", false), pending)
	m.once(t, `{}`)
	if m.asked != 2 {
		t.Errorf("%d requests", m.asked)
	}
}

func TestAPodIsWokenWhenSomethingElseIsKnownOfIt(t *testing.T) {
	p := aWorker(t, "w-0", "node-a", true)
	m := newMeasured(t, p)
	var woken []string
	m.Notify(func(name types.NamespacedName) { woken = append(woken, name.String()) })
	free, unknown := health.Storage{Full: node.No, Resume: 80}, health.Storage{Resume: 80}
	// Without a Slurm cache it is not known how many workers are out of service, so that no worker may go.
	full := health.Storage{Full: node.Yes, Percent: 90, Resume: 80, Waits: true}
	if got := m.Of(p); got != unknown {
		t.Errorf("before the first measurement: %+v", got)
	}
	for i, step := range []struct {
		body  string
		want  health.Storage
		wakes bool
	}{
		{says("uid-w-0", 100), free, true},
		{says("uid-w-0", 200), free, false},
		{says("uid-w-0", 930), full, true},
		{says("uid-w-0", 990), full, false},
		{"", unknown, true},
		{says("uid-another", 10), unknown, false},
		{says("uid-w-0", 820), full, true},
		{says("uid-w-0", 790), free, true},
	} {
		woken = nil
		m.once(t, step.body)
		if got := m.Of(p); got != step.want || (len(woken) == 1) != step.wakes {
			t.Errorf("step %d: %+v, woken %v", i, got, woken)
		}
	}
}

func TestASilentKubeletIsToldOnce(t *testing.T) {
	m := newMeasured(t, aWorker(t, "w-0", "node-a", true), aWorker(t, "w-1", "node-b", true))
	for _, body := range []string{"{}", "", "", "{}", "{}"} {
		m.once(t, body)
	}
	if len(m.lines) != 2 || !strings.Contains(m.lines[0], `"nodes"="node-a,node-b" "count"=2 "why"="reading the summary: EOF"`) ||
		!strings.Contains(m.lines[1], `"msg"="Kubelets answered again" "nodes"="node-a,node-b"`) {
		t.Errorf("%d lines: %s", len(m.lines), strings.Join(m.lines, "\n"))
	}
}

func TestALineOfTheLogNamesTenKubernetesNodes(t *testing.T) {
	var all []string
	for i := range 12 {
		all = append(all, fmt.Sprintf("n%d", i))
	}
	if diff := cmp.Diff("n0,n1,n2,n3,n4,n5,n6,n7,n8,n9,…", named(all)); diff != "" || named(all[:2]) != "n0,n1" {
		t.Error(diff)
	}
}

func TestWhatIsMeasuredWithoutAMeterOrALimit(t *testing.T) {
	var none *Meter
	none.Notify(func(types.NamespacedName) {})
	if got := none.Of(aWorker(t, "w-0", "node-a", true)); got != (health.Storage{}) {
		t.Errorf("without a Meter: %+v", got)
	}
	m := newMeasured(t)
	if got := m.Of(aWorker(t, "w-0", "node-a", false)); got != (health.Storage{Full: node.No, Resume: 80}) {
		t.Errorf("without a limit: %+v", got)
	}
}

func TestAMeterEndsWithItsContext(t *testing.T) {
	m := newMeasured(t, aWorker(t, "w-0", "node-a", true))
	m.body = "{}"
	ctx, cancel := context.WithCancel(m.ctx)
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it goes on")
	}
}

// TestWhoAsksTheDisruptionBudgetForAPlace has workers whose ephemeral storage is nearly used up, by what Slurm shows of them.
func TestWhoAsksTheDisruptionBudgetForAPlace(t *testing.T) {
	retired := aWorker(t, "w-4", "n", true)
	retired.Annotations = map[string]string{"coxswain.dev/retired": "scale-in"}
	pods := []*corev1.Pod{aWorker(t, "w-0", "n", true), aWorker(t, "w-1", "n", true), aWorker(t, "w-2", "n", true), aWorker(t, "w-3", "n", true), retired}
	m := newMeasured(t)
	full := health.Storage{Full: node.Yes, Percent: 90}
	facts, last := map[types.UID]health.Storage{}, map[types.UID]health.Storage{}
	for _, p := range pods {
		facts[p.UID], last[p.UID] = full, full
	}
	facts["uid-w-1"], facts["uid-w-2"] = health.Storage{}, health.Storage{} // their kubelets do not answer
	m.last = map[types.UID]health.Storage{"uid-w-1": full, "uid-w-2": {Full: node.Yes, Waits: true}}
	shown := func(name string) (node.State, node.Reason) {
		if name == "w-3" {
			return node.Parse([]string{"IDLE", "DRAIN"}), node.Reason{Text: "bad disk"}
		}
		return node.Parse([]string{"IDLE"}), node.Reason{}
	}
	r := m.request(types.NamespacedName{Namespace: "slurm", Name: "w"}, pods, shown, facts, last)
	slices.Sort(r.Wanted)
	if diff := cmp.Diff([]string{"w-0", "w-1"}, r.Wanted); diff != "" || len(r.Workers) != 5 {
		t.Errorf("of %d workers ask (-want, +got):\n%s", len(r.Workers), diff)
	}
}
