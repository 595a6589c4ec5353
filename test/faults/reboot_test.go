// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/controller/rebooter/rebooterplan"
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// rebooter is the rebooter of one Kubernetes node, and its machine. The surroundings let it act.
type rebooter struct {
	boot      int
	evictions map[types.UID]rebooterplan.Attempt
	reboot    rebooterplan.Attempt
}

func newRebooter() *rebooter { return &rebooter{evictions: map[types.UID]rebooterplan.Attempt{}} }

// degraded is a worker with a process that Slurm cannot end. Its machine is rebooted once, and the worker comes back. The machine of another
// worker, on which a job runs, is left alone, and so is a third one, which a person has drained.
func degraded(w *world) {
	w.occupy(4*time.Minute, "w-1")
	w.drainBy("root", "w-2", "bad disk")
	w.drainBy("slurm", "w-0", node.KillTaskFailed)
	w.sleep(5 * time.Minute)
}

// drainBy drains a node in the name of another.
func (w *world) drainBy(who, name, reason string) {
	w.mu.Lock()
	w.disturbed[name] = time.Now()
	w.mu.Unlock()
	if err := w.slurm.Update("root", name, "DRAIN", reason); err != nil {
		w.fail("the surroundings work", "%s drains %s: %v", who, name, err)
	}
}

// expectRebooted checks that the machine of w-0 was rebooted once, and no other one. A Slurm that has lost its state knows of no process.
func (w *world) expectRebooted() {
	for _, n := range w.sim.Objects(nodeKind) {
		want := 0
		if n.GetName() == "node-w-0" {
			want = 1
		}
		r := w.rebooters[n.GetName()]
		if r == nil || r.boot > want || r.boot < want && w.undisturbed() {
			w.fail("the machine of w-0 is rebooted once, and no other one", "%s: %+v, want %d boots", n.GetName(), r, want)
		}
	}
	if status, _ := w.slurm.Node("w-0"); w.undisturbed() && status.Reason != "" {
		w.fail("the worker comes back", "w-0 is %v, %s", status.State, status.Reason)
	}
}

// addRebooters puts the pod of a rebooter on each Kubernetes node.
func (w *world) addRebooters() {
	w.rebooters = map[string]*rebooter{}
	for _, n := range w.sim.Objects(nodeKind) {
		w.rebooters[n.GetName()] = newRebooter()
		pod := corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "rebooter-of-" + n.GetName(), Labels: map[string]string{
				label.Name: nebiusv1alpha1.NameNodeConfigurator, nebiusv1alpha1.LabelNodeConfigurator: "true",
			}},
			Spec: corev1.PodSpec{NodeName: n.GetName(), Containers: []corev1.Container{{Name: "rebooter", Env: []corev1.EnvVar{{Name: nebiusv1alpha1.EnvRebooterNodeName}}}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour))},
			}},
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod)
		if err != nil {
			w.t.Fatal(err)
		}
		u := &unstructured.Unstructured{Object: fields}
		u.SetGroupVersionKind(podKind)
		w.sim.Put(u)
	}
}

// reboots lets each rebooter do its next thing.
func (w *world) reboots() {
	for _, u := range w.sim.Objects(nodeKind) {
		r := w.rebooters[u.GetName()]
		if r == nil {
			continue
		}
		var n corev1.Node
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &n); err != nil {
			w.fail("the surroundings work", "reading Node %s: %v", u.GetName(), err)
			return
		}
		next := rebooterplan.Decide(rebooterplan.Facts{
			Now: time.Now(), Boot: fmt.Sprint("boot-", r.boot), Node: rebooterplan.NodeOf(&n), Pods: w.rebootable(n.Name), Evictions: r.evictions, Reboot: r.reboot,
		})
		switch next.Action {
		case rebooterplan.Evict:
			for _, p := range next.Evict {
				refused := "a budget"
				if pod := w.pod(p.Name); pod != nil && w.evict(pod) {
					refused = ""
				}
				r.evictions[p.UID] = r.evictions[p.UID].Next(time.Now(), refused)
			}
		case rebooterplan.Reboot:
			r.boot++
		case rebooterplan.Tell, rebooterplan.Cordon, rebooterplan.SetTaint, rebooterplan.Release:
			rebooterplan.Write(&n, next, time.Now())
			w.storeNode(&n)
		case rebooterplan.Wait:
		}
	}
}

// rebootable returns the pods on a Kubernetes node, without that of its rebooter.
func (w *world) rebootable(name string) (out []rebooterplan.Pod) {
	for _, u := range w.sim.Objects(podKind) {
		if on, _, _ := unstructured.NestedString(u.Object, "spec", "nodeName"); on == name && isWorker(u) {
			out = append(out, rebooterplan.Pod{UID: u.GetUID(), Namespace: u.GetNamespace(), Name: u.GetName(), Leaving: u.GetDeletionTimestamp() != nil})
		}
	}
	return out
}

// storeNode writes what a rebooter has changed. The cordon is its own, as the API server would note.
func (w *world) storeNode(n *corev1.Node) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(n)
	if err != nil {
		w.t.Error(err)
		return
	}
	w.edit(nodeKind, "", n.Name, func(u *unstructured.Unstructured) {
		u.Object["spec"], u.Object["status"] = fields["spec"], fields["status"]
		u.SetAnnotations(n.Annotations)
		if n.Annotations[nebiusv1alpha1.AnnotationRebooterCordoned] != "" {
			u.SetManagedFields([]metav1.ManagedFieldsEntry{{
				Manager: rebooterplan.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:unschedulable":{}}}`),
			}})
		}
	})
}

// judgeReboot checks that a reboot is asked for only while no job runs on the workers of the machine.
func (w *world) judgeReboot(name string) func(call) {
	asked := func() bool {
		for _, u := range w.sim.Objects(nodeKind) {
			if u.GetName() == name {
				return says(u, health.NodeReboot)
			}
		}
		return false
	}
	before := asked()
	return applied(func(c call) {
		if before || !asked() {
			return
		}
		for _, p := range w.rebootable(name) {
			if w.runsJobs(p.Name) {
				w.fail("invariant 1, jobs are not killed", "%s asks for a reboot of %s, where a job runs on %s", c.label(), name, p.Name)
			}
		}
	})
}
