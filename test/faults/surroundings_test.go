// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

var (
	podKind         = corev1.SchemeGroupVersion.WithKind("Pod")
	statefulSetKind = appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	deploymentKind  = appsv1.SchemeGroupVersion.WithKind("Deployment")
)

// surroundings plays scheduler, kubelets, slurmds, the controllers of workloads and the garbage collector: once a second
// each does its next step.
func (w *world) surroundings() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	done := int64(0)
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-tick.C:
		}
		before := w.sim.Version()
		w.reboots()
		w.replaces()
		w.mu.Lock()
		moved := w.moved
		w.moved = false
		w.mu.Unlock()
		if before == done && !moved {
			continue // they look at nothing else
		}
		w.workloads()
		w.jobs()
		for _, pod := range w.sim.Objects(podKind) {
			w.kubelet(pod)
		}
		w.collect()
		w.budgets()
		w.configuration()
		if w.sim.Version() != before {
			w.touch()
		} else if len(w.orphans) == 0 {
			done = before
		}
	}
}

// workloads lets StatefulSets and Deployments be ready, and gives StatefulSets their pods.
func (w *world) workloads() {
	for _, s := range w.sim.Objects(statefulSetKind) {
		n := number(s, "spec", "replicas")
		w.edit(statefulSetKind, s.GetNamespace(), s.GetName(), ready(n))
		w.scaleDown(s)
		for i := range n {
			name := fmt.Sprintf("%s-%d", s.GetName(), i)
			template, _, _ := unstructured.NestedMap(s.Object, "spec", "template")
			if old := w.pod(name); old != nil {
				if wanted, _, _ := unstructured.NestedStringMap(template, "metadata", "annotations"); !includes(old.GetAnnotations(), wanted) {
					w.sim.Remove(podKind, s.GetNamespace(), name)
				}
				continue
			}
			pod := &unstructured.Unstructured{Object: template}
			pod.SetGroupVersionKind(podKind)
			pod.SetNamespace(s.GetNamespace())
			pod.SetName(name)
			yes := true
			pod.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: s.GetName(), UID: s.GetUID(), Controller: &yes}})
			w.sim.Put(pod)
		}
	}
	for _, d := range w.sim.Objects(deploymentKind) {
		w.edit(deploymentKind, d.GetNamespace(), d.GetName(), ready(number(d, "spec", "replicas")))
	}
}

// configuration lets slurmctld load what is mounted, as the sidecar beside it does.
func (w *world) configuration() {
	for _, cm := range w.sim.Objects(corev1.SchemeGroupVersion.WithKind("ConfigMap")) {
		text, found, _ := unstructured.NestedString(cm.Object, "data", "slurm.conf")
		if !found {
			continue
		}
		document, _ := conf.Parse(conf.Slurm, text)
		if parameters, ok := document.Get("SlurmctldParameters"); ok {
			w.slurmOf(strings.TrimSuffix(cm.GetName(), "-config")).Load(strings.Split(parameters, ",")...)
		}
	}
}

func number(obj *unstructured.Unstructured, path ...string) int64 {
	n, found, _ := unstructured.NestedInt64(obj.Object, path...)
	if !found {
		return 1
	}
	return n
}

func includes(have, wanted map[string]string) bool {
	for name, value := range wanted {
		if have[name] != value {
			return false
		}
	}
	return true
}

func ready(n int64) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) {
		for _, field := range []string{"replicas", "readyReplicas", "updatedReplicas", "availableReplicas"} {
			_ = unstructured.SetNestedField(obj.Object, n, "status", field)
		}
		_ = unstructured.SetNestedField(obj.Object, obj.GetGeneration(), "status", "observedGeneration")
	}
}

// kubelet brings one pod a step further: bound, running, gone.
func (w *world) kubelet(pod *unstructured.Unstructured) {
	nodeName, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	w.mu.Lock()
	lost := w.lostNodes[nodeName]
	w.mu.Unlock()
	switch {
	case lost:
	case pod.GetDeletionTimestamp() != nil:
		if isWorker(pod) {
			w.preStop(pod)
			w.recall(slurmName(pod))
		}
		w.sim.Remove(podKind, pod.GetNamespace(), pod.GetName())
	case nodeName == "":
		if !w.schedulable("node-" + pod.GetName()) {
			return
		}
		w.edit(podKind, pod.GetNamespace(), pod.GetName(), func(p *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(p.Object, "node-"+pod.GetName(), "spec", "nodeName")
		})
	case phase == "Pending":
		w.setReady(pod, "Running", "True")
		if isWorker(pod) {
			w.register(pod)
		}
	}
}

// schedulable reports whether a Kubernetes node takes pods. One that is not there yet is made.
func (w *world) schedulable(name string) bool {
	for _, n := range w.sim.Objects(nodeKind) {
		if n.GetName() == name {
			cordoned, _, _ := unstructured.NestedBool(n.Object, "spec", "unschedulable")
			return !cordoned
		}
	}
	host := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	host.SetGroupVersionKind(nodeKind)
	host.SetName(name)
	w.sim.Put(host)
	return true
}

// preStop does what a worker does before it ends: it marks its node DOWN, and leaves the reasons of others alone. Then slurmd ends.
func (w *world) preStop(pod *unstructured.Unstructured) {
	name, slurm := slurmName(pod), w.slurmOf(clusterOf(pod))
	status, known := slurm.Node(name)
	if state := node.Parse(status.State); saves(pod) && (state.Has(node.PoweredDown) || state.Has(node.PoweringUp)) {
		slurm.Leave(name)
		return
	}
	reason := node.Reason{Text: status.Reason, SetBy: status.ReasonUser}
	text := node.OurReason("Pod is terminating")
	if reason.Text != "" && !strings.HasPrefix(reason.Text, "slurm-operator:") {
		text = reason.Text
	}
	if known && slurm.Update("root", name, "DOWN", text) != nil {
		slurm.Lose(name) // slurmctld is away, and notices later
	}
	slurm.Leave(name)
}

// register lets a worker's slurmd register. Its name is that of the pod's host.
func (w *world) register(pod *unstructured.Unstructured) {
	name, other := w.registersAs[slurmName(pod)]
	switch {
	case other && name == "":
		return
	case !other:
		name = slurmName(pod)
	}
	w.slurmOf(clusterOf(pod)).Register(fake.Node{Name: name, Hostname: slurmName(pod), CPUs: 4, Partitions: []string{"main", "hidden"}, Boot: saves(pod), Drained: drainedAtFirst(pod)})
	w.recall(slurmName(pod))
}

// clusterOf returns the cluster that a worker belongs to.
func clusterOf(pod *unstructured.Unstructured) string {
	return pod.GetLabels()[slinkyv1beta1.LabelCluster]
}

// slurmOf returns the Slurm of a cluster.
func (w *world) slurmOf(cluster string) *fake.Slurm {
	if other := w.others[cluster]; other != nil {
		return other
	}
	return w.slurm
}

// recall records that nothing runs any more on a Slurm node that slurmctld does not know of.
func (w *world) recall(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.forgotten, name)
}

// setReady writes a pod's phase and its Ready condition.
func (w *world) setReady(pod *unstructured.Unstructured, phase, status string) {
	w.edit(podKind, pod.GetNamespace(), pod.GetName(), func(p *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(p.Object, phase, "status", "phase")
		if host, _, _ := unstructured.NestedString(p.Object, "spec", "nodeName"); host != "" {
			_ = unstructured.SetNestedField(p.Object, host, "status", "hostIP") // a name does as well
			_ = unstructured.SetNestedField(p.Object, p.GetName(), "status", "podIP")
		}
		conditions, _, _ := unstructured.NestedSlice(p.Object, "status", "conditions")
		conditions = slices.DeleteFunc(conditions, func(c any) bool {
			fields, ok := c.(map[string]any)
			return ok && fields["type"] == "Ready"
		})
		conditions = append(conditions, map[string]any{"type": "Ready", "status": status, "lastTransitionTime": w.kubeNow().UTC().Format(time.RFC3339)})
		_ = unstructured.SetNestedSlice(p.Object, conditions, "status", "conditions")
	})
}

// edit changes an object as Kubernetes itself does.
func (w *world) edit(gvk schema.GroupVersionKind, namespace, name string, edit func(*unstructured.Unstructured)) {
	if err := w.sim.Edit(gvk, namespace, name, edit); err != nil {
		w.fail("the surroundings work", "%v", err)
	}
}

func isWorker(pod *unstructured.Unstructured) bool {
	return pod.GetLabels()[slinkyv1beta1.LabelCluster] != ""
}

func slurmName(pod *unstructured.Unstructured) string {
	if name, _, _ := unstructured.NestedString(pod.Object, "spec", "hostname"); name != "" {
		return name
	}
	return pod.GetName()
}

// collect deletes what has lost its last owner, a second after it has, and lets dependents forget an owner that goes
// without them: first all of them, a second later it goes.
func (w *world) collect() {
	all := w.sim.All()
	for _, obj := range all {
		if obj.GetDeletionTimestamp() != nil && slices.Contains(obj.GetFinalizers(), metav1.FinalizerOrphanDependents) {
			w.orphan(obj, all)
		}
	}
	exists := map[types.UID]bool{}
	for _, obj := range all {
		exists[obj.GetUID()] = true
	}
	orphans := map[types.UID]bool{}
	defer func() { w.orphans = orphans }()
	for _, obj := range all {
		owners := obj.GetOwnerReferences()
		if len(owners) == 0 || slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return exists[o.UID] }) {
			continue
		}
		orphans[obj.GetUID()] = true
		if !w.orphans[obj.GetUID()] {
			continue
		}
		if isWorker(obj) && obj.GetKind() == "Pod" {
			w.slurmOf(clusterOf(obj)).Lose(slurmName(obj))
			w.recall(slurmName(obj))
		}
		w.sim.Remove(obj.GroupVersionKind(), obj.GetNamespace(), obj.GetName())
	}
}

// orphan takes an owner off its dependents once, and a second later the finalizer off the owner, whoever has put it on a
// dependent again meanwhile.
func (w *world) orphan(owner *unstructured.Unstructured, all []*unstructured.Unstructured) {
	if w.left[owner.GetUID()] {
		w.edit(owner.GroupVersionKind(), owner.GetNamespace(), owner.GetName(), func(o *unstructured.Unstructured) {
			o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), func(f string) bool { return f == metav1.FinalizerOrphanDependents }))
		})
		return
	}
	if w.left == nil {
		w.left = map[types.UID]bool{}
	}
	w.left[owner.GetUID()] = true
	mine := func(o metav1.OwnerReference) bool { return o.UID == owner.GetUID() }
	for _, obj := range all {
		if slices.ContainsFunc(obj.GetOwnerReferences(), mine) {
			w.edit(obj.GroupVersionKind(), obj.GetNamespace(), obj.GetName(), func(o *unstructured.Unstructured) {
				o.SetOwnerReferences(slices.DeleteFunc(o.GetOwnerReferences(), mine))
			})
		}
	}
}
