// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// RunWorkloads makes all StatefulSets, Deployments and DaemonSets show that their pods are ready, the last on two nodes, and all Jobs that
// they are complete.
func (o *Operator) RunWorkloads() {
	o.t.Helper()
	var sets appsv1.StatefulSetList
	o.list(&sets)
	for i := range sets.Items {
		s := &sets.Items[i]
		n, before := *s.Spec.Replicas, s.DeepCopy()
		s.Status = appsv1.StatefulSetStatus{ObservedGeneration: s.Generation, Replicas: n, ReadyReplicas: n, UpdatedReplicas: n, AvailableReplicas: n}
		o.patchStatus(s, before)
	}
	var deployments appsv1.DeploymentList
	o.list(&deployments)
	for i := range deployments.Items {
		d := &deployments.Items[i]
		n, before := *d.Spec.Replicas, d.DeepCopy()
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, ReadyReplicas: n, UpdatedReplicas: n, AvailableReplicas: n}
		o.patchStatus(d, before)
	}
	var daemons appsv1.DaemonSetList
	o.list(&daemons)
	for i := range daemons.Items {
		d := &daemons.Items[i]
		before := d.DeepCopy()
		d.Status = appsv1.DaemonSetStatus{
			ObservedGeneration: d.Generation, DesiredNumberScheduled: 2, CurrentNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberReady: 2, NumberAvailable: 2,
		}
		o.patchStatus(d, before)
	}
	o.completeJobs()
}

func (o *Operator) completeJobs() {
	o.t.Helper()
	var jobs batchv1.JobList
	o.list(&jobs)
	for i := range jobs.Items {
		o.completeJob(&jobs.Items[i])
	}
}

// completeJob makes a Job complete that has no result yet. The operator gives some Jobs their result, so that a Job that changed since it
// was read is read again.
func (o *Operator) completeJob(j *batchv1.Job) {
	o.t.Helper()
	for len(j.Status.Conditions) == 0 {
		before, now := j.DeepCopy(), metav1.Now()
		j.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1}
		for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
			j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
		}
		err := o.User.Status().Patch(o.t.Context(), j, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) {
			err = o.User.Get(o.t.Context(), client.ObjectKeyFromObject(before), j)
		}
		switch {
		case apierrors.IsNotFound(err):
			return
		case err != nil:
			o.t.Fatalf("completing Job %s: %v", before.Name, err)
		}
	}
}

// Workers returns the worker pods, sorted by name.
func (o *Operator) Workers() []corev1.Pod {
	o.t.Helper()
	var pods corev1.PodList
	o.list(&pods, client.HasLabels{slinkyv1beta1.LabelCluster})
	return pods.Items
}

// RunWorkers starts the worker pods that do not run yet: they become ready, and their nodes register with Slurm. A pod that is gone by then
// does not.
func (o *Operator) RunWorkers() {
	o.t.Helper()
	for _, p := range o.Workers() {
		if p.Status.Phase == corev1.PodRunning || p.Status.Phase == corev1.PodFailed {
			continue
		}
		if o.setPhase(&p, corev1.PodRunning) {
			o.Slurm.Register(registration(&p))
		}
	}
}

// machineMemory is what the machines below workers have, in MiB.
const machineMemory = 24000

// registration returns what the slurmd of a pod registers with: the weight and the features of its --conf, and the memory that the
// image leaves it.
func registration(p *corev1.Pod) fake.Node {
	n := fake.Node{Name: p.Spec.Hostname, CPUs: 4, RealMemory: machineMemory}
	for _, c := range p.Spec.Containers {
		n.Drained += fake.DrainedIn(c.Args)
		for _, arg := range c.Args {
			n.Boot = n.Boot || arg == "-b"
			for option := range strings.FieldsSeq(strings.Trim(arg, "'")) {
				switch key, value, _ := strings.Cut(option, "="); key {
				case "Weight":
					n.Weight, _ = strconv.Atoi(value)
				case "Features":
					n.Features = strings.Split(value, ",")
				case "RealMemory":
					n.RealMemory, _ = strconv.ParseInt(value, 10, 64)
				}
			}
		}
		for _, e := range c.Env {
			if memory, err := strconv.ParseInt(e.Value, 10, 64); e.Name == "POD_MEMORY" && err == nil && n.RealMemory == machineMemory {
				n.MemSpecLimit = machineMemory - memory
			}
		}
	}
	return n
}

// KubeNode makes a Kubernetes node, which goes with the test, and returns its name: there is one control plane for all
// tests of a binary.
func (o *Operator) KubeNode(name string) string {
	o.t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: o.Namespace + "-" + name}}
	if err := o.User.Create(o.t.Context(), n); err != nil {
		o.t.Fatalf("creating Node %s: %v", n.Name, err)
	}
	o.t.Cleanup(func() {
		if err := o.User.Delete(context.WithoutCancel(o.t.Context()), n); client.IgnoreNotFound(err) != nil {
			o.t.Errorf("deleting Node %s: %v", n.Name, err)
		}
	})
	return n.Name
}

// ChangeKubeNode edits a Kubernetes node.
func (o *Operator) ChangeKubeNode(name string, edit func(n *corev1.Node)) {
	o.t.Helper()
	var n corev1.Node
	if err := o.User.Get(o.t.Context(), client.ObjectKey{Name: name}, &n); err != nil {
		o.t.Fatalf("reading Node %s: %v", name, err)
	}
	patch := client.MergeFrom(n.DeepCopy())
	edit(&n)
	if err := o.User.Patch(o.t.Context(), &n, patch); err != nil {
		o.t.Fatalf("changing Node %s: %v", name, err)
	}
}

// SetKubeNodeReady sets condition Ready of a Kubernetes node.
func (o *Operator) SetKubeNodeReady(name string, status corev1.ConditionStatus) {
	o.t.Helper()
	var n corev1.Node
	if err := o.User.Get(o.t.Context(), client.ObjectKey{Name: name}, &n); err != nil {
		o.t.Fatalf("reading Node %s: %v", name, err)
	}
	before := n.DeepCopy()
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	o.patchStatus(&n, before)
}

// SetKubeNodeCondition sets a condition of a Kubernetes node, and keeps its others.
func (o *Operator) SetKubeNodeCondition(name, kind string, status corev1.ConditionStatus) {
	o.t.Helper()
	var n corev1.Node
	if err := o.User.Get(o.t.Context(), client.ObjectKey{Name: name}, &n); err != nil {
		o.t.Fatalf("reading Node %s: %v", name, err)
	}
	before := n.DeepCopy()
	n.Status.Conditions = append(slices.DeleteFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return string(c.Type) == kind }),
		corev1.NodeCondition{Type: corev1.NodeConditionType(kind), Status: status, Reason: "Test"})
	o.patchStatus(&n, before)
}

// DeleteKubeNode deletes a Kubernetes node.
func (o *Operator) DeleteKubeNode(name string) {
	o.t.Helper()
	if err := o.User.Delete(o.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		o.t.Fatalf("deleting Node %s: %v", name, err)
	}
}

// Kill deletes a pod that is lost for good: without a grace period.
func (o *Operator) Kill(pod string) {
	o.t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: pod}}
	if err := o.User.Delete(o.t.Context(), p, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		o.t.Fatalf("deleting Pod %s: %v", pod, err)
	}
}

// SetReady only changes whether a pod is ready.
func (o *Operator) SetReady(pod string, status corev1.ConditionStatus) {
	o.t.Helper()
	o.setReady(pod, status, time.Now())
}

// SetReadySince lets a pod have been ready for longer than the test can wait.
func (o *Operator) SetReadySince(pod string, since time.Time) {
	o.t.Helper()
	o.setReady(pod, corev1.ConditionTrue, since)
}

func (o *Operator) setReady(pod string, status corev1.ConditionStatus, since time.Time) {
	o.t.Helper()
	p := Get[corev1.Pod](o, pod)
	patch := client.StrategicMergeFrom(p.DeepCopy())
	p.Status.Conditions = append(without(p.Status.Conditions, corev1.PodReady),
		corev1.PodCondition{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(since)})
	if err := o.User.Status().Patch(o.t.Context(), p, patch); err != nil {
		o.t.Fatalf("writing the status of Pod %s: %v", pod, err)
	}
}

// Bind lets the scheduler put a pod on a Kubernetes node.
func (o *Operator) Bind(pod, node string) {
	o.t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: pod}}
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	if err := o.User.SubResource("binding").Create(o.t.Context(), p, binding); err != nil {
		o.t.Fatalf("binding Pod %s to Node %s: %v", pod, node, err)
	}
}

// SetPod has a kubelet report that a pod is in a phase. A running pod is ready, others are not.
func (o *Operator) SetPod(name string, phase corev1.PodPhase) {
	o.t.Helper()
	if !o.setPhase(Get[corev1.Pod](o, name), phase) {
		o.t.Fatalf("Pod %s is gone", name)
	}
}

// setPhase is SetPod for a pod that was read before, and reports whether it is still there.
func (o *Operator) setPhase(pod *corev1.Pod, phase corev1.PodPhase) bool {
	o.t.Helper()
	ready := corev1.ConditionFalse
	if phase == corev1.PodRunning {
		ready = corev1.ConditionTrue
	}
	patch := client.StrategicMergeFrom(pod.DeepCopy())
	pod.Status.Phase = phase
	pod.Status.Conditions = append(without(pod.Status.Conditions, corev1.PodReady),
		corev1.PodCondition{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.Now()})
	err := o.User.Status().Patch(o.t.Context(), pod, patch)
	if client.IgnoreNotFound(err) != nil {
		o.t.Fatalf("writing the status of Pod %s: %v", pod.Name, err)
	}
	return err == nil
}

func without(conditions []corev1.PodCondition, kind corev1.PodConditionType) []corev1.PodCondition {
	var out []corev1.PodCondition
	for _, c := range conditions {
		if c.Type != kind {
			out = append(out, c)
		}
	}
	return out
}

func (o *Operator) list(list client.ObjectList, options ...client.ListOption) {
	o.t.Helper()
	if err := o.User.List(o.t.Context(), list, append(options, client.InNamespace(o.Namespace))...); err != nil {
		o.t.Fatalf("listing %T: %v", list, err)
	}
}

func (o *Operator) patchStatus(obj, before client.Object) {
	o.t.Helper()
	// What was listed may be gone by now.
	if err := o.User.Status().Patch(o.t.Context(), obj, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		o.t.Fatalf("writing the status of %T %s: %v", obj, obj.GetName(), err)
	}
}
