// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/operator"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/kubesim"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// scheme is the operator's, and definitions of kinds, which it watches; making it takes a while.
var scheme = sync.OnceValue(func() *runtime.Scheme {
	s := operator.Scheme()
	utilruntime.Must(apiextensionsv1.AddToScheme(s))
	return s
})

// namespace is where everything happens.
const namespace = "team"

// world is a Kubernetes, a Slurm and an operator between them, all in one synctest bubble.
type world struct {
	t     *testing.T
	sim   *kubesim.Server
	slurm *fake.Slurm
	// others are the Slurms of clusters other than demo, by name; nil in most scenarios.
	others map[string]*fake.Slurm
	// jail is where files are written; nil where the program is the operator, which writes none.
	jail *jailed
	// rebooters are the rebooters of Kubernetes nodes, by name; nil in most scenarios. Only the surroundings change them.
	rebooters map[string]*rebooter
	// cloud replaces machines; nil in most scenarios. Only the surroundings change it.
	cloud *cloud
	// storage is how much ephemeral storage workers use; nil where it is not measured.
	storage *storage
	// limit is how many workers checks may take out of service.
	limit health.DrainLimit
	// broken has the names of the Slurm nodes on which checks fail. It has a lock of its own: Slurm asks while it holds its own.
	broken sync.Map
	// registersAs are the names by which slurmds register, by the names that they should have; an empty one never registers.
	registersAs map[string]string
	// kubeNow is the clock of the API server and the kubelets.
	kubeNow func() time.Time
	// user is a client whose writes are neither counted nor disturbed.
	user client.Client

	ctx      context.Context //nolint:containedctx // of everything that runs in this world
	cancel   context.CancelFunc
	running  sync.WaitGroup
	start    time.Time
	orphans  map[types.UID]bool // what had no owner a second ago; only collect looks at it
	asleep   map[string]bool    // clusters whose slurmctld is scaled to zero; only scaleDown looks at it
	left     map[types.UID]bool // owners that were taken off their dependents; only orphan looks at it
	replaced chan struct{}      // has a value when a process is dead

	mu         sync.Mutex
	processes  []*process
	calls      []call
	writes     int // by the operator, counted when they are made
	inject     func(call) verdict
	untouched  bool            // nothing is done to the operator's calls
	changed    time.Time       // last change by the operator or by what is around it
	busy       time.Time       // until when something is still to happen
	lying      time.Time       // since when Slurm does not tell the truth; zero: it does
	moved      bool            // Kubernetes nodes came or went
	seen       map[string]bool // violations that were reported
	violations []string
	disturbed  map[string]time.Time // by Slurm node, when somebody else last changed its reason
	lostNodes  map[string]bool      // Kubernetes nodes that are lost
	refusing   bool                 // nobody reaches the API server
	frozen     bool                 // Slurm answers with the list of nodes in shown
	shown      []byte
	retired    map[types.UID]time.Time // by pod, since when it is to go
	emptied    bool                    // slurmctld has lost its state
	forgotten  map[string]bool         // Slurm nodes that run, that a slurmctld which lost its state had, and that have not registered since
}

// process is one life of the operator.
type process struct {
	ctx    context.Context //nolint:containedctx // ends with the process
	kill   context.CancelFunc
	cancel context.CancelFunc // stops the manager in an orderly way
	done   chan error
	// frozen is true if nothing that it sends from now on arrives; what is under way does.
	frozen atomic.Bool
	// destroyed is when it deleted workers; guarded by the world's lock.
	destroyed []time.Time
}

func newWorld(t *testing.T, c clocks) *world {
	t.Helper()
	w := &world{
		t: t, sim: kubesim.New(scheme()), start: time.Now(), changed: time.Now(), replaced: make(chan struct{}, 10), seen: map[string]bool{},
		asleep: map[string]bool{}, disturbed: map[string]time.Time{}, lostNodes: map[string]bool{}, retired: map[types.UID]time.Time{}, forgotten: map[string]bool{},
	}
	w.kubeNow = func() time.Time { return time.Now().Add(c.kubernetes) }
	w.sim.Now = w.kubeNow
	w.slurm = fake.New(fake.Options{Completing: 2 * time.Second, Script: w.checkScript, Now: func() time.Time { return time.Now().Add(c.slurm) }})
	w.ctx, w.cancel = context.WithCancel(context.Background())
	var err error
	w.user, err = client.New(w.sim.Config(nil), client.Options{Scheme: scheme(), Mapper: w.sim.Mapper()})
	if err != nil {
		t.Fatalf("making the user's client: %v", err)
	}
	w.user = client.WithFieldOwner(w.user, "user")
	w.running.Go(w.surroundings)
	w.running.Go(w.supervise)
	return w
}

// boot starts an operator, or a writer of files, that knows nothing but what is stored.
func (w *world) boot() {
	w.t.Helper()
	p := &process{done: make(chan error, 1)}
	p.ctx, p.kill = context.WithCancel(w.ctx)
	ctx, cancel := context.WithCancel(w.ctx)
	p.cancel = cancel
	skip := true
	kubernetes := w.sim.Config(func(next http.RoundTripper) http.RoundTripper { return &tap{w, p, "kubernetes", next} })
	options := ctrl.Options{
		Metrics:        metricsserver.Options{BindAddress: "0"},
		Controller:     config.Controller{SkipNameValidation: &skip},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return w.sim.Mapper(), nil },
	}
	var mgr ctrl.Manager
	var err error
	if w.jail != nil {
		mgr, err = w.writer(p, kubernetes, options)
	} else {
		mgr, err = w.operator(ctx, p, kubernetes, options)
	}
	if err != nil {
		w.t.Errorf("making the manager: %v", err)
		return
	}
	go func() { p.done <- mgr.Start(ctx) }()
	w.mu.Lock()
	w.processes = append(w.processes, p)
	w.changed = time.Now()
	w.mu.Unlock()
}

// operator makes the manager of the operator.
func (w *world) operator(ctx context.Context, p *process, kubernetes *rest.Config, options ctrl.Options) (ctrl.Manager, error) {
	if w.storage != nil {
		kubernetes = rest.CopyConfig(kubernetes)
		kubernetes.Transport = &kubelets{w, p, kubernetes.Transport}
	}
	return operator.NewManager(ctx, kubernetes, options, operator.Options{
		DrainLimit: w.limit, Storage: w.storage.options(),
		Namespaces: []string{namespace}, Concurrency: func(string) int { return 4 },
		Enabled: map[string]bool{"controller": true, "restapi": true, "nodeset": true, "accounting": true, "loginset": true, "slurmcluster": true},
		Images:  image.Set{Registry: "example.com/coxswain", Tag: "26.05"}, ClusterDomain: "cluster.local",
		Caches: slurmcache.Options{Transport: &tap{w, p, "slurm", slurms{w}}},
		Health: w.health(),
	})
}

// health returns which conditions of Kubernetes nodes count, and what is done about their machines.
func (w *world) health() health.Conditions {
	c := health.Conditions{Types: []string{health.DefaultMaintenanceType, health.HardwareIssuesSuspected}, RebootDegraded: w.rebooters != nil}
	if w.cloud != nil {
		c.ReplaceNodes, c.NotReadyTimeout = true, notReadyTimeout
	}
	return c
}

// supervise does what the kubelet does for the operator's pod: it starts another one when one has ended.
func (w *world) supervise() {
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-w.replaced:
		}
		w.sleep(time.Second) // nothing moves any more in what is dead
		w.reap()
		w.sleep(2 * time.Second)
		if w.ctx.Err() == nil && w.alive() == 0 {
			w.boot()
		}
	}
}

func (w *world) alive() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(w.processes), func(p *process) bool { return p.ctx.Err() != nil }))
}

// reap ends what is left of dead processes.
func (w *world) reap() {
	w.mu.Lock()
	dead := slices.DeleteFunc(slices.Clone(w.processes), func(p *process) bool { return p.ctx.Err() == nil })
	w.processes = slices.DeleteFunc(w.processes, func(p *process) bool { return p.ctx.Err() != nil })
	w.mu.Unlock()
	for _, p := range dead {
		p.cancel()
		if err := <-p.done; err != nil && !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), errDead.Error()) {
			w.t.Errorf("running the manager: %v", err)
		}
	}
}

// crash kills every process that runs now: none of their calls arrives any more.
func (w *world) crash() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.processes {
		p.kill()
	}
	w.replaced <- struct{}{}
}

// close ends everything in the world.
func (w *world) close() {
	w.slurm.SetFault(nil)
	w.sim.Release()
	w.sleep(time.Second)
	w.mu.Lock()
	for _, p := range w.processes {
		p.kill()
	}
	w.mu.Unlock()
	w.sleep(time.Second)
	w.reap()
	w.cancel()
	w.running.Wait()
	w.sleep(2 * time.Minute) // for what the manager leaves running a while
}

func (w *world) sleep(d time.Duration) { time.Sleep(d) }

// touch records that something changes.
func (w *world) touch() {
	w.mu.Lock()
	w.changed = time.Now()
	w.mu.Unlock()
}

const (
	// quiet is how long nothing must change for the world to be at rest. It is longer than the operator waits before it tries
	// again what Slurm has refused.
	quiet = 5*time.Minute + 30*time.Second
	// patience is how long a world may take to come to rest.
	patience = 40 * time.Minute
	// endless is how many writes are more than any scenario needs.
	endless = 20000
)

// settle waits until nothing changes any more.
func (w *world) settle() {
	w.t.Helper()
	began := time.Now()
	for {
		w.sleep(time.Second)
		w.mu.Lock()
		last, up, writes := workerpod.Later(w.changed, w.busy), len(w.processes) > 0, len(w.calls)
		w.mu.Unlock()
		if up && time.Since(last) > quiet {
			return
		}
		if after := time.Since(began); after > patience || writes > endless {
			w.fail("comes to rest", "something still changes after %s and %d writes", after, writes)
			return
		}
	}
}

// fail records what went wrong, once for each kind.
func (w *world) fail(kind, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failLocked(kind, format, args...)
}

func (w *world) failLocked(kind, format string, args ...any) {
	if w.seen[kind] {
		return
	}
	w.seen[kind] = true
	w.violations = append(w.violations, fmt.Sprintf("%7.1fs %s: %s", time.Since(w.start).Seconds(), kind, fmt.Sprintf(format, args...)))
}

// create stores what a user wrote.
func create[T any, P interface {
	*T
	client.Object
}](w *world, text string) {
	w.t.Helper()
	var obj P = manifest.Parse[T](w.t, text)
	obj.SetNamespace(namespace)
	w.touch()
	if err := w.user.Create(w.ctx, obj); err != nil {
		w.t.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
	}
}

// get reads an object, and reports whether there is one. A fault may have let it go, so that a caller gets an empty one, never
// nil. It does not end the test, since what happens later happens in goroutines of its own.
func get[T any, P interface {
	*T
	client.Object
}](w *world, name string) (obj P, there bool) {
	w.t.Helper()
	obj = new(T)
	err := w.user.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
	if client.IgnoreNotFound(err) != nil {
		w.t.Errorf("reading %T %s: %v", obj, name, err)
	}
	return obj, err == nil
}

// change edits an object as a user does.
func change[T any, P interface {
	*T
	client.Object
}](w *world, name string, edit func(P)) {
	w.t.Helper()
	obj, there := get[T, P](w, name)
	if !there {
		return // a fault may have let it go
	}
	edit(obj)
	w.touch()
	if err := w.user.Update(w.ctx, obj); err != nil {
		w.t.Errorf("changing %T %s: %v", obj, name, err)
	}
}

// gone waits until an object is gone, as "kubectl delete" does.
func gone[T any, P interface {
	*T
	client.Object
}](w *world, name string) {
	w.t.Helper()
	for began := time.Now(); time.Since(began) < patience; w.sleep(time.Second) {
		if _, there := get[T, P](w, name); !there {
			return
		}
	}
}

// known waits until Slurm shows to which pod a node belongs.
func (w *world) known(node string) {
	for began := time.Now(); time.Since(began) < patience; w.sleep(time.Second) {
		if status, ok := w.slurm.Node(node); ok && status.Comment != "" {
			return
		}
	}
}

// remove deletes an object as a user does.
func remove[T any, P interface {
	*T
	client.Object
}](w *world, name string, options ...client.DeleteOption) {
	w.t.Helper()
	var obj P = new(T)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	w.touch()
	if err := w.user.Delete(w.ctx, obj, options...); client.IgnoreNotFound(err) != nil {
		w.t.Errorf("deleting %T %s: %v", obj, name, err)
	}
}
