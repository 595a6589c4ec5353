// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/operator"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

func mergePatch(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }

// kubelets play the kubelets, the slurmds and the sidecar of slurmctld that has it load its configuration.
type kubelets struct {
	bench *bench
	work  chan string

	mu      sync.Mutex
	pods    map[string]*corev1.Pod
	events  int       // that have come
	changed time.Time // when the last one came
	slurmd  time.Time // when the last slurmd registered
}

func newKubelets(b *bench) *kubelets {
	b.t.Helper()
	k := &kubelets{bench: b, work: make(chan string, 1<<16), pods: map[string]*corev1.Pod{}}
	ctx, cancel := context.WithCancel(context.Background())
	watched, err := cache.New(b.server.Config, cache.Options{
		Scheme: operator.Scheme(), DefaultNamespaces: map[string]cache.Config{b.server.Namespace: {}},
		DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		b.t.Fatalf("making a cache: %v", err)
	}
	var running sync.WaitGroup
	running.Go(func() { _ = watched.Start(ctx) }) // it ends with the test
	for _, w := range []struct {
		kind    client.Object
		handler toolscache.ResourceEventHandler
	}{
		{&corev1.Pod{}, toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { k.see(nil, o) },
			UpdateFunc: k.see,
			DeleteFunc: k.miss,
		}},
		{&corev1.ConfigMap{}, toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { b.load(o) },
			UpdateFunc: func(_, o any) { b.load(o) },
		}},
	} {
		informer, err := watched.GetInformer(ctx, w.kind)
		if err == nil {
			_, err = informer.AddEventHandler(w.handler)
		}
		if err != nil {
			b.t.Fatalf("watching %T: %v", w.kind, err)
		}
	}
	for range 16 {
		running.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case name := <-k.work:
					k.run(ctx, name)
				}
			}
		})
	}
	b.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return k
}

// see records a pod that is new or has changed.
func (k *kubelets) see(before, after any) {
	pod, ok := after.(*corev1.Pod)
	if !ok {
		return
	}
	k.mu.Lock()
	k.pods[pod.Name] = pod
	k.events++
	k.changed = time.Now()
	k.mu.Unlock()
	old, known := before.(*corev1.Pod)
	if !known || old.UID != pod.UID || old.Spec.NodeName != pod.Spec.NodeName || old.DeletionTimestamp == nil && pod.DeletionTimestamp != nil {
		k.work <- pod.Name
	}
}

func (k *kubelets) miss(o any) {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.pods, pod.Name)
	k.events++
	k.changed = time.Now()
}

// load has slurmctld load a new slurm.conf at once.
func (b *bench) load(o any) {
	cm, ok := o.(*corev1.ConfigMap)
	if !ok {
		return
	}
	document, _ := conf.Parse(conf.Slurm, cm.Data["slurm.conf"])
	if parameters, ok := document.Get("SlurmctldParameters"); ok {
		b.slurm.Load(strings.Split(parameters, ",")...)
	}
}

// run brings a pod one step further.
func (k *kubelets) run(ctx context.Context, name string) {
	k.mu.Lock()
	pod := k.pods[name]
	k.mu.Unlock()
	var err error
	switch {
	case pod == nil:
	case pod.DeletionTimestamp != nil:
		err = k.end(ctx, pod)
	case pod.Spec.NodeName != "":
		err = k.begin(ctx, pod)
	case !waitsForScheduler(pod):
		err = k.bind(ctx, pod)
	}
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		k.bench.root.Errorf("playing the kubelet of %s: %v", name, err)
	}
}

// readyStatus is what a kubelet reports about a pod that runs.
const readyStatus = `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"%s"}]}}`

// waitsForScheduler reports whether kube-scheduler finds a Kubernetes node for a pod: a worker, or one of the StatefulSet that they are
// compared with. Those of components have claims that are not bound to volumes.
func waitsForScheduler(pod *corev1.Pod) bool { return isWorker(pod) || pod.Labels["app"] == "bare" }

// bind gives a pod a Kubernetes node.
func (k *kubelets) bind(ctx context.Context, pod *corev1.Pod) error {
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: k.bench.kubeNode(0)}}
	if err := k.bench.user.SubResource("binding").Create(ctx, pod.DeepCopy(), binding); err != nil {
		return fmt.Errorf("binding: %w", err)
	}
	return nil
}

// begin runs a pod.
func (k *kubelets) begin(ctx context.Context, pod *corev1.Pod) error {
	if has(pod, "Ready") {
		return nil
	}
	target := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}}
	patch := fmt.Appendf(nil, readyStatus, time.Now().UTC().Format(time.RFC3339))
	if err := k.bench.user.Status().Patch(ctx, target, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
		return fmt.Errorf("reporting: %w", err)
	}
	if isWorker(pod) {
		k.bench.slurm.Register(fake.Node{Name: slurmNode(pod), CPUs: 64})
		k.mu.Lock()
		k.slurmd = time.Now()
		k.mu.Unlock()
	}
	return nil
}

// registered returns when the last slurmd registered.
func (k *kubelets) registered() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.slurmd
}

// end does what the preStop hook of workers does, and lets the pod go.
func (k *kubelets) end(ctx context.Context, pod *corev1.Pod) error {
	if isWorker(pod) {
		_ = k.bench.slurm.Update("slurm", slurmNode(pod), "DOWN", "slurm-operator: Pod is terminating") // it may never have registered
		k.bench.slurm.Leave(slurmNode(pod))
	}
	return k.bench.user.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
}

func isWorker(pod *corev1.Pod) bool { return pod.Labels[slinkyv1beta1.LabelCluster] != "" }

func slurmNode(pod *corev1.Pod) string {
	if pod.Spec.Hostname != "" {
		return pod.Spec.Hostname
	}
	return pod.Name
}

// wait waits until the pods are as check wants them, and returns when they were.
func (k *kubelets) wait(t *testing.T, what string, check func(pods map[string]*corev1.Pod) bool) time.Time {
	t.Helper()
	// Looking at thousands of pods with every change would take most of the machine's time.
	tick := time.NewTicker(max(5*time.Millisecond, time.Duration(k.bench.size)*20*time.Microsecond))
	defer tick.Stop()
	longest := k.bench.longest()
	deadline, looked := time.Now().Add(longest), -1
	for now := range tick.C {
		k.mu.Lock()
		events, changed, ok := k.events, k.changed, false
		if events != looked {
			ok = check(k.pods)
		}
		k.mu.Unlock()
		if ok {
			return changed
		}
		k.bench.process.check(t)
		if looked = events; now.After(deadline) {
			t.Fatalf("%s takes more than %s", what, longest)
		}
	}
	panic("a ticker does not end")
}

// workers counts the workers for which ok returns true.
func workers(pods map[string]*corev1.Pod, ok func(*corev1.Pod) bool) int {
	n := 0
	for _, p := range pods {
		if isWorker(p) && ok(p) {
			n++
		}
	}
	return n
}

// workers returns the names of the workers that are there.
func (k *kubelets) workers() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var names []string
	for name, p := range k.pods {
		if isWorker(p) {
			names = append(names, name)
		}
	}
	return names
}

func exists(*corev1.Pod) bool { return true }

// serves reports whether the pod shows that its Slurm node takes jobs.
func serves(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && has(p, "SlurmNodeStateIdle") && !has(p, "SlurmNodeStateDrain")
}

func drained(p *corev1.Pod) bool { return has(p, "SlurmNodeStateDrain") }

func has(pod *corev1.Pod, kind string) bool {
	if pod == nil {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if string(c.Type) == kind && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// kubeNode returns the name of a Kubernetes node.
func (b *bench) kubeNode(i int) string { return fmt.Sprintf("%s-%d", b.server.Namespace, i) }

// makeKubeNodes makes a Kubernetes node for each worker.
func (b *bench) makeKubeNodes() {
	b.t.Helper()
	ours := client.MatchingLabels{"bench": b.server.Namespace}
	b.root.Cleanup(func() {
		if err := b.user.DeleteAllOf(context.Background(), &corev1.Node{}, ours); err != nil {
			b.root.Errorf("deleting the nodes: %v", err)
		}
	})
	b.all(func(i int) error {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: b.kubeNode(i), Labels: map[string]string{
			"bench": b.server.Namespace, corev1.LabelHostname: b.kubeNode(i),
		}}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		n.Status.Allocatable = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"),
			corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("110"),
		}
		if err := b.user.Create(b.t.Context(), n); err != nil {
			return err
		}
		// The API server gives every new one the taint of one that is not ready, and the controller that removes it does not run here.
		return b.user.Patch(b.t.Context(), n, mergePatch(`{"spec":{"taints":null}}`))
	})
}

// all does something for every worker, sixteen at a time.
func (b *bench) all(do func(i int) error) {
	b.t.Helper()
	work := make(chan int)
	var running sync.WaitGroup
	for range 16 {
		running.Go(func() {
			for i := range work {
				if err := do(i); err != nil {
					b.t.Errorf("%d: %v", i, err)
				}
			}
		})
	}
	for i := range b.size {
		work <- i
	}
	close(work)
	running.Wait()
}
