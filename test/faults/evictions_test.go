// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

var (
	nodeKind   = corev1.SchemeGroupVersion.WithKind("Node")
	budgetKind = policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")
)

// evictions are what decision 009 is about. A user evicts workers without having cordoned anything, and is refused. Then all
// Kubernetes nodes are drained as kubectl does that, and the workers go when their jobs have ended. Then jobs wait for the new
// workers, start the moment these take jobs, and they are evicted at that very moment.
func evictions(w *world) {
	w.occupy(3*time.Minute, "w-0", "w-1")
	for name, pod := range w.runningWorkers() {
		if w.evict(pod) && w.untouched {
			w.fail("decision 009, a worker in use is not evicted", "Pod %s, which was not drained", name)
		}
	}
	w.cordonNodes(true)
	w.evictAll()
	waiting := map[string]int64{}
	for _, name := range []string{"w-0", "w-1", "w-2"} {
		waiting[name] = w.slurm.Submit(fake.Job{NodeList: []string{name}, CPUs: 1, Duration: 2 * time.Minute})
	}
	w.cordonNodes(false)
	for began := time.Now(); time.Since(began) < 2*time.Minute; w.sleep(200 * time.Millisecond) {
		for name, pod := range w.runningWorkers() {
			if w.runsJobs(name) {
				w.evict(pod)
			}
		}
	}
	for _, id := range waiting {
		w.slurm.Cancel(id) // of a worker that an administrator has drained meanwhile
	}
}

// runningWorkers returns the worker pods that run, by name.
func (w *world) runningWorkers() map[string]*unstructured.Unstructured {
	out := map[string]*unstructured.Unstructured{}
	for _, p := range w.sim.Objects(podKind) {
		if phase, _, _ := unstructured.NestedString(p.Object, "status", "phase"); isWorker(p) && phase == "Running" && p.GetDeletionTimestamp() == nil {
			out[p.GetName()] = p
		}
	}
	return out
}

// runsJobs reports whether a job runs on a Slurm node, or may do so.
func (w *world) runsJobs(name string) bool {
	status, known := w.slurm.Node(name)
	return known && node.Parse(status.State).Busy() != node.No
}

// evict asks the API server to evict a pod, and reports whether it does. It must not while a job runs there.
func (w *world) evict(pod *unstructured.Unstructured) bool {
	busy := w.runsJobs(slurmName(pod))
	name := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod.GetName()}}
	err := w.user.SubResource("eviction").Create(w.ctx, name, &policyv1.Eviction{})
	switch {
	case apierrors.IsTooManyRequests(err), apierrors.IsNotFound(err):
		return false
	case err != nil:
		w.t.Errorf("evicting %s: %v", pod.GetName(), err)
		return false
	}
	w.touch()
	if busy {
		w.fail("invariant 1, jobs are not killed", "Pod %s was evicted while a job ran there; its labels are %v", pod.GetName(), pod.GetLabels())
	}
	return true
}

// cordonNodes cordons all Kubernetes nodes, or takes that back.
func (w *world) cordonNodes(cordoned bool) {
	for _, n := range w.sim.Objects(nodeKind) {
		w.edit(nodeKind, "", n.GetName(), func(n *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(n.Object, cordoned, "spec", "unschedulable")
		})
	}
	w.touch()
}

// evictAll evicts the workers that run now, as kubectl drain does: it tries again every five seconds, and waits until they
// are gone.
func (w *world) evictAll() {
	wanted := map[string]types.UID{}
	for name, pod := range w.runningWorkers() {
		wanted[name] = pod.GetUID()
	}
	for began := time.Now(); len(wanted) > 0 && time.Since(began) < patience; w.sleep(5 * time.Second) {
		for name, uid := range wanted {
			switch pod := w.pod(name); {
			case pod == nil || pod.GetUID() != uid:
				delete(wanted, name)
			case pod.GetDeletionTimestamp() == nil:
				w.evict(pod)
			}
		}
	}
	if len(wanted) > 0 {
		w.fail("workers can be evicted in the end", "%v are still there after %s", wanted, patience)
	}
}

// budgets does what the disruption controller does: it counts the pods of each PodDisruptionBudget, and sets how many may
// be disrupted. All budgets here are absolute.
func (w *world) budgets() {
	for _, obj := range w.sim.Objects(budgetKind) {
		var b policyv1.PodDisruptionBudget
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &b); err != nil {
			w.fail("the surroundings work", "%v", err)
			return
		}
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil || b.Spec.MinAvailable == nil {
			w.fail("the surroundings work", "budget %s: %v", b.Name, err)
			return
		}
		expected, healthy, desired := int64(0), int64(0), int64(b.Spec.MinAvailable.IntValue())
		for _, p := range w.sim.Objects(podKind) {
			if selector.Matches(labels.Set(p.GetLabels())) {
				expected++
				if p.GetDeletionTimestamp() == nil && says(p, string(corev1.PodReady)) {
					healthy++
				}
			}
		}
		w.edit(budgetKind, obj.GetNamespace(), obj.GetName(), func(o *unstructured.Unstructured) {
			for field, n := range map[string]int64{
				"expectedPods": expected, "currentHealthy": healthy, "desiredHealthy": desired,
				"disruptionsAllowed": max(0, healthy-desired), "observedGeneration": o.GetGeneration(),
			} {
				_ = unstructured.SetNestedField(o.Object, n, "status", field)
			}
		})
	}
}
