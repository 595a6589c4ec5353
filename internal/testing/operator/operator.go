// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operator runs the whole operator in a test: the manager of cmd/manager without metrics and leader election, with the
// rights of its role and no others. The API server is real (internal/testing/apiserver); a Slurm in memory (internal/testing/fake)
// stands behind every RestApi. What a kubelet and the workload controllers would do, the test does by methods.
package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/health/podstorage"
	"github.com/coxswain-hpc/coxswain/internal/operator"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// Operator is a running operator and its surroundings.
type Operator struct {
	*apiserver.Server
	// User is the client of the test, whose writes are not counted.
	User client.Client
	// Slurm answers for every RestApi.
	Slurm *fake.Slurm
	// Budget is how many deletions a cluster may see within a minute, from the next Restart on; zero for the usual.
	Budget int
	// DrainLimit is how many workers of a NodeSet checks may take out of service, from the next Restart on; the zero value is one.
	DrainLimit health.DrainLimit
	// Storage is how ephemeral storage is measured, from the next Restart on; nil is not at all.
	Storage *podstorage.Options
	// RebootDegraded has machines rebooted on which a process cannot be ended, from the next Restart on.
	RebootDegraded bool
	// ReplaceNodes has Nodes deleted whose machines are to be replaced, and NotReadyTimeout those that have not been ready for so long, from
	// the next Restart on.
	ReplaceNodes    bool
	NotReadyTimeout time.Duration
	// Metrics is where the operator's metrics are registered, from the next Restart on; nil registers none.
	Metrics prometheus.Registerer
	// Adapt changes what a manager is made of, from the next Restart on; nil changes nothing.
	Adapt func(base *ctrl.Options, options *operator.Options)

	t       testing.TB
	enabled map[string]bool
	stop    func()
	mu      sync.Mutex
	errors  []string
}

// Errors returns what the operator has logged as errors, a line each.
func (o *Operator) Errors() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.errors)
}

// log keeps errors, and shows everything with -v.
func (o *Operator) log(prefix, args string) {
	if testing.Verbose() {
		fmt.Fprintln(os.Stderr, prefix, args)
	}
	if strings.Contains(args, `"error"=`) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.errors = append(o.errors, args)
	}
}

// Start starts the operator in a namespace of its own, with the controllers of these kinds, or all. It stops when the
// test ends.
func Start(t testing.TB, kinds ...string) *Operator {
	t.Helper()
	server := apiserver.Start(t)
	o := &Operator{Server: server, User: server.Outsider(t, operator.Scheme()), Slurm: fake.New(fake.Options{}), t: t}
	for _, kind := range kinds {
		if o.enabled == nil {
			o.enabled = map[string]bool{}
		}
		o.enabled[kind] = true
	}
	o.run()
	t.Cleanup(func() { o.stop() })
	return o
}

// Restart stops the operator and starts another one, which knows nothing but what is in the cluster. For the pods it is as if some
// minutes had passed in between, so that nothing is under way any more that the former one has sent.
func (o *Operator) Restart() {
	o.t.Helper()
	o.stop()
	var pods corev1.PodList
	o.list(&pods, client.HasLabels{slinkyv1beta1.LabelCluster})
	for i := range pods.Items {
		pod, old := &pods.Items[i], pods.Items[i].DeepCopy()
		long := workerpod.Opening{At: pod.CreationTimestamp.Add(-time.Hour), By: "the former one"}
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, slinkyv1beta1.AnnotationOpening, long.String())
		if err := o.User.Patch(o.t.Context(), pod, client.MergeFrom(old)); client.IgnoreNotFound(err) != nil {
			o.t.Fatalf("letting time pass for Pod %s: %v", pod.Name, err)
		}
	}
	o.run()
}

func (o *Operator) run() {
	o.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	skip := true
	base := ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
		Logger: funcr.New(func(prefix, args string) {
			// What is under way when an operator is stopped fails by that.
			if ctx.Err() == nil || !strings.Contains(args, "context canceled") {
				o.log(prefix, args)
			}
		}, funcr.Options{}),
		// Several managers of one test binary have controllers of the same name.
		Controller: config.Controller{SkipNameValidation: &skip},
	}
	options := operator.Options{
		Namespace: "coxswain-system", Namespaces: []string{o.Namespace}, Enabled: o.enabled, Concurrency: func(string) int { return 4 },
		Images: image.Set{Registry: "example.com/coxswain", Tag: "26.05"}, ClusterDomain: "cluster.local",
		Caches:     slurmcache.Options{Transport: o.Slurm.Transport(), Interval: 50 * time.Millisecond, Window: time.Millisecond, Budget: o.Budget},
		DrainLimit: o.DrainLimit, Storage: o.Storage, Metrics: o.Metrics,
		Health: health.Conditions{
			Types: []string{health.DefaultMaintenanceType, health.HardwareIssuesSuspected}, IgnoredLabels: map[string]string{"spare": "yes"},
			RebootDegraded: o.RebootDegraded, ReplaceNodes: o.ReplaceNodes, NotReadyTimeout: o.NotReadyTimeout,
		},
	}
	if o.Adapt != nil {
		o.Adapt(&base, &options)
	}
	mgr, err := operator.NewManager(ctx, o.AsOperator(o.t), base, options)
	if err != nil {
		cancel()
		o.t.Fatalf("making the manager: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	o.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			var stacks strings.Builder // which say what still runs, if something does
			_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
			o.t.Errorf("running the manager: %v\n%s", err, stacks.String())
		}
	}
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		o.t.Fatal("the manager's cache did not come into sync")
	}
}

// Create creates an object in the test's namespace, from YAML.
func Create[T any, P interface {
	*T
	client.Object
}](o *Operator, text string) P {
	o.t.Helper()
	var obj P = manifest.Parse[T](o.t, text)
	obj.SetNamespace(o.Namespace)
	if err := o.User.Create(o.t.Context(), obj); err != nil {
		o.t.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
	}
	return obj
}

// Find reads an object of the test's namespace from the server. When it cannot, it returns an empty object, never nil, and an error that
// names the object; apierrors.IsNotFound finds that there is none. It neither waits nor ends the test, for checks that are
// repeated or run in goroutines of their own.
func Find[T any, P interface {
	*T
	client.Object
}](o *Operator, name string) (P, error) {
	var obj P = new(T)
	if err := o.User.Get(o.t.Context(), client.ObjectKey{Namespace: o.Namespace, Name: name}, obj); err != nil {
		return new(T), fmt.Errorf("reading %T %s: %w", obj, name, err)
	}
	return obj, nil
}

// Exists reports whether there is an object in the test's namespace now.
func Exists[T any, P interface {
	*T
	client.Object
}](o *Operator, name string) bool {
	o.t.Helper()
	_, err := Find[T, P](o, name)
	if client.IgnoreNotFound(err) != nil {
		o.t.Fatal(err)
	}
	return err == nil
}

// Get reads an object of the test's namespace, and waits for it when there is none yet. It never returns nil: when none comes, the test
// fails with the object's name. To check for an absence use Find or Exists.
func Get[T any, P interface {
	*T
	client.Object
}](o *Operator, name string) (obj P) {
	o.t.Helper()
	apiserver.Eventually(o.t, func() (err error) {
		obj, err = Find[T, P](o, name)
		return err
	})
	return obj
}

// Change edits an object of the test's namespace, again after a conflict.
func Change[T any, P interface {
	*T
	client.Object
}](o *Operator, name string, edit func(P)) {
	o.t.Helper()
	apiserver.Eventually(o.t, func() error {
		obj, err := Find[T, P](o, name)
		if err != nil {
			return err
		}
		edit(obj)
		return o.User.Update(o.t.Context(), obj)
	})
}

// Delete deletes an object of the test's namespace.
func Delete[T any, P interface {
	*T
	client.Object
}](o *Operator, name string) {
	o.t.Helper()
	var obj P = new(T)
	obj.SetNamespace(o.Namespace)
	obj.SetName(name)
	if err := o.User.Delete(o.t.Context(), obj); err != nil {
		o.t.Fatalf("deleting %T %s: %v", obj, name, err)
	}
}

// look is the time between two looks for writes. quiet is the number of looks in a row without one for the operator to be at rest.
// That is 1.5 s, and longer when this process or the API server gets no time to run. The operator looks at a worker again a second
// after it has changed the state of its node, when Slurm has not shown it by then.
const (
	look  = 20 * time.Millisecond
	quiet = 75
)

// Settle waits until the operator has written nothing for a while, to Kubernetes or to Slurm, has seen what Slurm is like since, and makes
// no host keys. On a machine that is busy with other things the operator asks less often than once a second. It returns how many writes were
// made to Kubernetes meanwhile.
func (o *Operator) Settle() int {
	o.t.Helper()
	before, slurm := len(o.Writes.All()), len(o.Slurm.Writes())
	last, asked, still := before, o.asked(), 0
	deadline := time.Now().Add(2 * time.Minute)
	tick := time.NewTicker(look)
	defer tick.Stop()
	linked, making, hidden := false, false, false
	begun := time.Now()
	for looks := 0; ; looks, still = looks+1, still+1 {
		now := <-tick.C
		if looks%10 == 0 {
			linked, making = o.linked(), o.makesHostKeys()
			hidden = linked && now.Before(begun.Add(longestHidden)) && o.hidesDrains()
		}
		if n, m := len(o.Writes.All()), len(o.Slurm.Writes()); making || hidden || n != last || m != slurm {
			last, slurm, asked, still = n, m, o.asked(), 0
		}
		// The first answer may have been under way before the last write.
		if still >= quiet && (o.asked() >= asked+2 || !linked) {
			return last - before
		}
		if now.After(deadline) {
			o.t.Fatalf("the operator does not come to rest; its last writes: %v", o.Writes.All()[max(0, last-10):])
		}
	}
}

// longestHidden is longer than the operator waits before it shows a drain. Some operators never show one.
const longestHidden = 8 * time.Second

// hidesDrains reports whether a node is drained and idle, and its pod does not show that yet: the operator waits for the list of jobs, for
// some seconds, to show it together with the end of the pod's protection.
func (o *Operator) hidesDrains() bool {
	return slices.ContainsFunc(o.Workers(), func(p corev1.Pod) bool {
		n, _ := o.Slurm.Node(p.Name)
		shows := func(state corev1.PodConditionType) bool {
			return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == node.ConditionPrefix+state && c.Status == corev1.ConditionTrue
			})
		}
		drained := slices.Contains(n.State, "IDLE") && slices.Contains(n.State, "DRAIN")
		return drained && p.DeletionTimestamp == nil && (!shows("Idle") || !shows("Drain"))
	})
}

// asked returns how often Slurm was asked for its nodes.
func (o *Operator) asked() int { return o.Slurm.Counters().Calls["GET nodes"] }

// linked reports whether the operator has a working Slurm cache, and so will ask Slurm again.
func (o *Operator) linked() bool {
	var controllers slinkyv1beta1.ControllerList
	if err := o.User.List(o.t.Context(), &controllers, client.InNamespace(o.Namespace)); err != nil {
		o.t.Fatalf("listing Controllers: %v", err)
	}
	return slices.ContainsFunc(controllers.Items, func(c slinkyv1beta1.Controller) bool {
		return meta.IsStatusConditionTrue(c.Status.Conditions, slinkyv1beta1.ConditionSlurmReachable)
	})
}

// makesHostKeys reports whether the operator has not answered for a LoginSet yet. It may make the host keys, which takes seconds in which
// nothing is written.
func (o *Operator) makesHostKeys() bool {
	if o.enabled != nil && !o.enabled["loginset"] {
		return false
	}
	var sets slinkyv1beta1.LoginSetList
	o.list(&sets)
	return slices.ContainsFunc(sets.Items, func(l slinkyv1beta1.LoginSet) bool {
		ready := meta.FindStatusCondition(l.Status.Conditions, slinkyv1beta1.ConditionReady)
		return l.DeletionTimestamp == nil && (ready == nil || ready.ObservedGeneration < l.Generation)
	})
}

// ExpectCondition waits until an object has a condition with this status and reason, and returns its message.
func ExpectCondition[T any, P interface {
	*T
	client.Object
	GetConditions() []metav1.Condition
}](o *Operator, name, kind string, status metav1.ConditionStatus, reason string) string {
	o.t.Helper()
	message := ""
	apiserver.Eventually(o.t, func() error {
		obj, err := Find[T, P](o, name)
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(obj.GetConditions(), kind)
		if c == nil || c.Status != status || c.Reason != reason || c.ObservedGeneration < obj.GetGeneration() {
			return fmt.Errorf("condition %s of %T %s is %+v of generation %d, want %s/%s", kind, obj, name, c, obj.GetGeneration(), status, reason)
		}
		message = c.Message
		return nil
	})
	return message
}
