// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bench measures the operator as it is shipped: the manager's binary between a real API server and a fake
// slurmctld, with workers that kube-scheduler schedules and no machine runs. What it costs is counted outside of it, by a proxy before the API server and
// by the fake. Counts are held by every run; times depend on the machine and are only printed. docs/administrators/benchmarks.md has the
// figures and how to read them.
package bench

import (
	"flag"
	"net"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/operator"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

var (
	sizes   = flag.String("bench.sizes", "100", "comma-separated numbers of workers")
	manager = flag.String("bench.manager", "", "the manager's binary; default: one is built")
	flags   = flag.String("bench.flags", "", "comma-separated flags of the manager, in addition, such as --leader-elect=false")
	out     = flag.String("bench.out", "", "file to which figures are appended as JSON lines")
	window  = flag.Duration("bench.window", 5*time.Second, "how long to look at a cluster at rest")
	samples = flag.Int("bench.samples", 1, "how often what happens to one worker is measured")
	compare = flag.Bool("bench.compare", false, "make as many pods with a StatefulSet, for comparison")
)

func TestMain(m *testing.M) { apiserver.Main(m) }

// longest bounds every wait; what takes so long has failed.
func (b *bench) longest() time.Duration {
	return 5*time.Minute + time.Duration(b.size)*100*time.Millisecond
}

// bench is one cluster with its operator.
type bench struct {
	// t is the running step, root the whole.
	t, root *testing.T
	size    int
	server  *apiserver.Server
	proxy   *proxy
	// user is another client: what it writes is not counted.
	user     client.Client
	slurm    *fake.Slurm
	rest     *httptest.Server
	wire     atomic.Int64 // bytes between the operator and slurmrestd, in both directions
	kubelets *kubelets
	process  *process
	created  time.Duration // how long it took until all pods of the workers existed
	started  time.Duration // how long it took until all of them were ready
	// exceeded are the limits that did not hold. They are printed again at the very end, below the manager's log.
	exceeded []string
}

func newBench(t *testing.T, size int) *bench {
	t.Helper()
	slurm := fake.New(fake.Options{Compact: true})
	b := &bench{t: t, root: t, size: size, server: apiserver.Start(t), slurm: slurm, rest: httptest.NewUnstartedServer(slurm)}
	t.Cleanup(func() {
		for _, exceeded := range b.exceeded {
			t.Log(exceeded)
		}
	})
	b.rest.Listener = &countingListener{b.rest.Listener, &b.wire}
	b.rest.Start()
	t.Cleanup(b.rest.Close)
	b.user = b.server.Outsider(t, operator.Scheme())
	b.proxy = newProxy(t, b.server.AsOperator(t))
	b.allowLease()
	b.kubelets = newKubelets(b)
	b.server.Workloads(t, newProxy(t, b.server.Config).server.URL) // as far from the API server as the operator
	if size > 0 {
		b.server.Scheduler(t)
	}
	b.process = b.start()
	return b
}

// built is the manager's binary.
var built = sync.OnceValues(func() (string, error) {
	if *manager != "" {
		return *manager, nil
	}
	path := filepath.Join("..", "..", "bin", "manager-of-the-bench")
	text, err := exec.Command("go", "build", "-o", path, "../../cmd/manager").CombinedOutput()
	if err != nil {
		return string(text), err
	}
	return path, nil
})

// TestWorkers takes as many workers as bench.sizes has through their life.
func TestWorkers(t *testing.T) {
	defer writeTable(t)
	for size := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(size, func(t *testing.T) { newBench(t, n).measure() })
	}
}

func (b *bench) measure() {
	b.makeKubeNodes()
	b.warm()
	add[slinkyv1beta1.Controller](b, `{metadata: {name: demo}, spec: {}}`)
	add[slinkyv1beta1.RestApi](b, `{metadata: {name: demo}, spec: {controllerRef: {name: demo}}}`)
	b.settle()
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"create", b.create}, {"compare", b.compare}, {"rest", b.rests}, {"change", b.changes}, {"cordon one", b.cordonOne},
		{"cordon all", b.cordonAll}, {"maintenance", b.maintenance}, {"restart", b.restarts}, {"update all", b.updateAll}, {"scale in", b.scaleIn},
	} {
		ok := b.root.Run(step.name, func(t *testing.T) {
			b.t = t
			b.seen()
			step.do()
			b.tellLoad(step.name)
		})
		b.t = b.root
		if !ok && b.created == 0 {
			return // of nothing
		}
		if !ok {
			b.mend()
		}
	}
}

// mend brings the cluster back to where it was before a step that failed, so that the next one has a chance: the operator
// runs, and no Kubernetes node is cordoned.
func (b *bench) mend() {
	if b.process.over() {
		b.process = b.start()
	}
	b.all(func(i int) error { b.cordon(b.kubeNode(i), false); return nil })
	b.root.Run("mend", func(t *testing.T) {
		b.t = t
		b.kubelets.wait(t, "mending", func(pods map[string]*corev1.Pod) bool { return workers(pods, exists) == workers(pods, serves) })
		b.settle()
	})
	b.t = b.root
}

// allowLease lets the operator have its Lease, in the namespace that its flags name. Its chart has such a role.
func (b *bench) allowLease() {
	b.t.Helper()
	name := metav1.ObjectMeta{Namespace: b.server.Namespace, Name: "lease"}
	for _, obj := range []client.Object{
		&rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "list", "watch", "create", "update", "patch"},
		}}},
		&rbacv1.RoleBinding{
			ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts"}},
		},
	} {
		if err := b.user.Create(b.t.Context(), obj); err != nil {
			b.t.Fatalf("granting the operator its Lease: %v", err)
		}
	}
}

func add[T any, P interface {
	*T
	client.Object
}](b *bench, text string) P {
	b.t.Helper()
	var obj P = manifest.Parse[T](b.t, text)
	obj.SetNamespace(b.server.Namespace)
	if err := b.user.Create(b.t.Context(), obj); err != nil {
		b.t.Fatalf("creating %T: %v", obj, err)
	}
	return obj
}

// change edits an object of the user's with a merge patch.
func (b *bench) change(obj client.Object, name, patch string) {
	b.t.Helper()
	obj.SetName(name)
	obj.SetNamespace(b.server.Namespace)
	if err := b.user.Patch(b.t.Context(), obj, mergePatch(patch)); err != nil {
		b.t.Fatalf("changing %T %s: %v", obj, name, err)
	}
}

// countingListener counts the bytes of all its connections.
type countingListener struct {
	net.Listener
	bytes *atomic.Int64
}

func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countingConn{c, l.bytes}, nil
}

type countingConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c *countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

func (c *countingConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.bytes.Add(int64(n))
	return n, err
}
