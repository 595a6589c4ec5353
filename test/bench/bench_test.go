// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bench measures the worker engine: the operator as it is shipped, between a real API server and a fake slurmctld,
// with workers that no machine runs. The figures are in docs/benchmarks.md. Counts are held by every run; times depend on
// the machine and are only told.
package bench

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/operator"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
	"github.com/coxswain-hpc/coxswain/internal/slurm/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

var (
	sizes   = flag.String("bench.sizes", "100", "comma-separated numbers of workers")
	manager = flag.String("bench.manager", "", "the manager's binary; default: one is built")
	out     = flag.String("bench.out", "", "file to which results are appended as JSON lines")
	window  = flag.Duration("bench.window", 15*time.Second, "how long to look at a cluster at rest")
)

func TestMain(m *testing.M) { apiserver.Main(m) }

// bench is one cluster with its operator.
type bench struct {
	t          *testing.T
	size       int
	server     *apiserver.Server
	proxy      *proxy
	kubeconfig string
	user       client.WithWatch
	slurm      *fake.Slurm
	rest       *httptest.Server
	kubelets   *kubelets
	process    *process
}

// result is one figure.
type result struct {
	Workers int     `json:"workers"`
	Figure  string  `json:"figure"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
}

func (b *bench) tell(figure string, value float64, unit string) {
	b.t.Helper()
	text, err := json.Marshal(result{b.size, figure, value, unit})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Logf("%s", text)
	if *out == "" {
		return
	}
	file, err := os.OpenFile(*out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		b.t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // the write below says what matters
	if _, err := fmt.Fprintf(file, "%s\n", text); err != nil {
		b.t.Fatal(err)
	}
}

// atMost tells a count and holds it.
func (b *bench) atMost(figure string, value int64, limit int64, unit string) {
	b.t.Helper()
	b.tell(figure, float64(value), unit)
	if value > limit {
		b.t.Errorf("%s: %d %s, at most %d are allowed", figure, value, unit, limit)
	}
}

func TestBench(t *testing.T) {
	if *manager == "" {
		*manager = filepath.Join(t.TempDir(), "manager")
		if text, err := exec.CommandContext(t.Context(), "go", "build", "-o", *manager, "../../cmd/manager").CombinedOutput(); err != nil {
			t.Fatalf("building the manager: %v\n%s", err, text)
		}
	}
	for size := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(size, func(t *testing.T) { measure(t, n) })
	}
}

func measure(t *testing.T, size int) {
	server := apiserver.Start(t)
	slurm := fake.New(fake.Options{Compact: true})
	b := &bench{t: t, size: size, server: server, proxy: newProxy(t, server), slurm: slurm, rest: httptest.NewServer(slurm)}
	t.Cleanup(b.rest.Close)
	b.kubeconfig = server.Kubeconfig(t, b.proxy.server.URL)
	user, err := client.NewWithWatch(server.Config, client.Options{Scheme: operator.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	b.user = user
	b.kubelets = newKubelets(b)
	b.process = b.start()
	for _, step := range []func(){b.create, b.rests, b.changes, b.cordonOne, b.cordonAll, b.restarts} {
		step()
		if t.Failed() {
			return
		}
	}
}

func add[T any, P interface {
	*T
	client.Object
}](b *bench, text string) {
	b.t.Helper()
	var obj P = manifest.Parse[T](b.t, text)
	obj.SetNamespace(b.server.Namespace)
	if err := b.user.Create(b.t.Context(), obj); err != nil {
		b.t.Fatalf("creating %T: %v", obj, err)
	}
}

// longest bounds every step; a step that takes so long has failed.
const longest = 10 * time.Minute

// create makes the workers, and as many pods of a StatefulSet for comparison.
func (b *bench) create() {
	add[slinkyv1beta1.Controller](b, `{metadata: {name: demo}, spec: {}}`)
	add[slinkyv1beta1.RestApi](b, `{metadata: {name: demo}, spec: {controllerRef: {name: demo}}}`)
	b.load()
	b.settle()
	writes, calls, began := b.proxy.writes.Load(), b.calls(), time.Now()
	add[slinkyv1beta1.NodeSet](b, fmt.Sprintf(`{metadata: {name: w}, spec: {controllerRef: {name: demo}, replicas: %d}}`, b.size))
	made := b.kubelets.wait(b.t, "creating the workers", longest, func(pods map[string]*corev1.Pod) bool { return count(pods, "w-", anything) == b.size })
	ours := made.Sub(began)
	b.tell("create: all pods exist", made.Sub(began).Seconds(), "s")
	ready := b.kubelets.wait(b.t, "registering the workers", longest, func(pods map[string]*corev1.Pod) bool { return count(pods, "w-", idle) == b.size })
	b.tell("create: all workers are idle", ready.Sub(began).Seconds(), "s")
	b.settle()
	// One for each pod, one for what Slurm says of it, and the status of the NodeSet on the way.
	b.atMost("create: API writes", b.proxy.writes.Load()-writes, int64(3*b.size+100), "writes")
	b.tell("create: Slurm calls", float64(b.calls()-calls), "calls")

	b.server.StatefulSets(b.t)
	began = time.Now()
	add[appsv1.StatefulSet](b, fmt.Sprintf(`{metadata: {name: bare}, spec: {replicas: %d, podManagementPolicy: Parallel, serviceName: bare,
		selector: {matchLabels: {app: bare}}, template: {metadata: {labels: {app: bare}}, spec: {containers: [{name: c, image: i}]}}}}`, b.size))
	bare := b.kubelets.wait(b.t, "creating the StatefulSet", longest, func(pods map[string]*corev1.Pod) bool { return count(pods, "bare-", anything) == b.size })
	b.tell("create: all pods of a StatefulSet exist", bare.Sub(began).Seconds(), "s")
	b.tell("create: ratio to the StatefulSet", ours.Seconds()/bare.Sub(began).Seconds(), "")
	b.load()
	b.settle()
}

// load lets slurmctld load the configuration, which has changed with the NodeSet.
func (b *bench) load() {
	b.t.Helper()
	var cm corev1.ConfigMap
	deadline := time.Now().Add(time.Minute)
	for {
		err := b.user.Get(b.t.Context(), client.ObjectKey{Namespace: b.server.Namespace, Name: "demo-config"}, &cm)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("reading the configuration: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	document, _ := conf.Parse(conf.Slurm, cm.Data["slurm.conf"])
	if parameters, ok := document.Get("SlurmctldParameters"); ok {
		b.slurm.Load(strings.Split(parameters, ",")...)
	}
}

func anything(*corev1.Pod) bool { return true }
func idle(p *corev1.Pod) bool   { return has(p, "SlurmNodeStateIdle") }

func count(pods map[string]*corev1.Pod, prefix string, ok func(*corev1.Pod) bool) int {
	n := 0
	for name, p := range pods {
		if strings.HasPrefix(name, prefix) && ok(p) {
			n++
		}
	}
	return n
}

// calls are all calls that Slurm has had.
func (b *bench) calls() int {
	n := 0
	for _, calls := range b.slurm.Counters().Calls {
		n += calls
	}
	return n
}

// settle waits until the operator has written nothing for three seconds.
func (b *bench) settle() {
	b.t.Helper()
	last, since, deadline := b.proxy.writes.Load(), time.Now(), time.Now().Add(longest)
	for time.Since(since) < 3*time.Second {
		time.Sleep(50 * time.Millisecond)
		if n := b.proxy.writes.Load(); n > last {
			last, since = n, time.Now()
		}
		if time.Now().After(deadline) {
			b.t.Fatal("the operator does not come to rest")
		}
	}
}

// rests looks at a cluster in which nothing happens.
func (b *bench) rests() {
	b.slurm.ResetCounters()
	writes, cpu, began := b.proxy.writes.Load(), b.process.cpu(), time.Now()
	time.Sleep(*window)
	took, counters := time.Since(began), b.slurm.Counters()
	perMinute := float64(counters.Received+counters.Sent) / took.Minutes()
	b.atMost(fmt.Sprintf("at rest for %s: API writes", *window), b.proxy.writes.Load()-writes, 0, "writes")
	b.atMost("at rest: Slurm bytes", int64(perMinute), 10*1024, "bytes/min")
	b.tell("at rest: CPU", 100*(b.process.cpu()-cpu).Seconds()/took.Seconds(), "% of a core")
	b.tell("at rest: RSS", b.process.rss(), "MiB")
}

// changes measures from a change in Slurm to the pod's condition.
func (b *bench) changes() {
	const samples = 20
	var took []time.Duration
	for i := range samples {
		name := fmt.Sprintf("w-%d", i*b.size/samples)
		began := time.Now()
		if err := b.slurm.Update("root", name, "DRAIN", "bench"); err != nil {
			b.t.Fatal(err)
		}
		seen := b.kubelets.wait(b.t, "a change in Slurm", time.Minute, func(pods map[string]*corev1.Pod) bool { return has(pods[name], "SlurmNodeStateDrain") })
		took = append(took, seen.Sub(began))
		if err := b.slurm.Update("root", name, "RESUME", ""); err != nil {
			b.t.Fatal(err)
		}
	}
	slices.Sort(took)
	b.tell("Slurm change to pod condition: p50", took[len(took)/2].Seconds(), "s")
	b.tell("Slurm change to pod condition: p99", took[len(took)-1].Seconds(), "s")
	b.settle()
}

// mark cordons a worker, or no longer.
func (b *bench) mark(name, value string) {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = b.server.Namespace, name
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, slinkyv1beta1.AnnotationPodCordon, value)
	if err := b.user.Patch(b.t.Context(), pod, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		b.t.Errorf("marking %s: %v", name, err)
	}
}

// drained waits until as many nodes drain.
func (b *bench) drained(n int) time.Time {
	b.t.Helper()
	deadline := time.Now().Add(longest)
	for {
		draining := 0
		for _, w := range b.slurm.Writes() {
			if w.State == "DRAIN" && w.User != "root" {
				draining += nodes(b.t, w.Nodes)
			}
		}
		if draining >= n {
			return time.Now()
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%d of %d nodes drain", draining, n)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (b *bench) cordonOne() {
	const samples = 10
	var took []time.Duration
	for i := range samples {
		b.slurm.ResetCounters()
		began := time.Now()
		name := fmt.Sprintf("w-%d", i)
		b.mark(name, `"true"`)
		took = append(took, b.drained(1).Sub(began))
		b.mark(name, "null")
		b.settle()
	}
	slices.Sort(took)
	b.tell("cordon of one to drain: p99", took[len(took)-1].Seconds(), "s")
}

// cordonAll cordons all workers by sixteen at a time, and measures from the last mark on.
func (b *bench) cordonAll() {
	for _, value := range []string{`"true"`, "null"} {
		b.slurm.ResetCounters()
		began := time.Now()
		b.all(func(name string) { b.mark(name, value) })
		marked := time.Now()
		if value == "null" {
			break
		}
		done := b.drained(b.size)
		b.tell("cordon of all: marking", marked.Sub(began).Seconds(), "s")
		b.tell("cordon of all: last mark to last drain", done.Sub(marked).Seconds(), "s")
		b.tell("cordon of all: Slurm writes", float64(b.slurm.Counters().Calls["POST nodes"]), "calls")
		b.settle()
	}
	b.settle()
}

// restarts stops the operator and starts it again: once with nothing to do, and once with a mark that was made meanwhile.
func (b *bench) restarts() {
	b.process.stop()
	writes := b.proxy.writes.Load()
	b.process = b.start()
	time.Sleep(*window)
	b.atMost("restart: API writes", b.proxy.writes.Load()-writes, 0, "writes")
	b.process.stop()
	b.slurm.ResetCounters()
	b.mark("w-0", `"true"`)
	b.process = b.start()
	b.tell("restart: start to first correct action", b.drained(1).Sub(b.process.started).Seconds(), "s")
	b.settle()
	b.tell("restart: RSS afterwards", b.process.rss(), "MiB")
}
