// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// kubeNode makes a Kubernetes node that only NodeSets of this test select, until the test ends.
func kubeNode(t *testing.T, o *operator.Operator, name string) *corev1.Node {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: o.Namespace + "-" + name, Labels: map[string]string{"test": o.Namespace},
		Annotations: map[string]string{slinkyv1beta1.AnnotationHostnameOverride: name}}}
	if err := o.User.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.User.Delete(context.WithoutCancel(t.Context()), node) })
	// The admission plugin taints new nodes until the node controller, which does not run here, sees them ready.
	changeNode(t, o, node, func(n *corev1.Node) { n.Spec.Taints = nil })
	return node
}

func changeNode(t *testing.T, o *operator.Operator, node *corev1.Node, edit func(*corev1.Node)) {
	t.Helper()
	edit(node)
	if err := o.User.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
}

// daemons starts a cluster with a worker on each of the test's nodes a and b.
func daemons(t *testing.T) (o *operator.Operator, a, b *corev1.Node) {
	t.Helper()
	o = operator.Start(t)
	a, b = kubeNode(t, o, "a"), kubeNode(t, o, "b")
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {}}`)
	operator.Create[slinkyv1beta1.RestApi](o, operator.ARestAPI)
	operator.Create[slinkyv1beta1.NodeSet](o, fmt.Sprintf(
		`{metadata: {name: w}, spec: {controllerRef: {name: demo}, scalingMode: DaemonSet, replicas: 7, template: {spec: {nodeSelector: {test: %s}}}}}`, o.Namespace))
	o.ExpectWorkers("w-a", "w-b")
	o.RunWorkers()
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmIdle == 2 && s.Desired == 2 })
	return o, a, b
}

func TestDaemonSetModeFollowsTheKubernetesNodes(t *testing.T) {
	t.Parallel()
	o, a, b := daemons(t)
	p := operator.Get[corev1.Pod](o, "w-b")
	terms := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if p.Spec.Hostname != "b" || terms[0].MatchFields[0].Values[0] != b.Name || p.Labels[slinkyv1beta1.LabelScalingMode] != "DaemonSet" {
		t.Errorf("w-b is %+v", p)
	}

	// Cordoned, it keeps its worker; tainted NoExecute, it loses it.
	changeNode(t, o, b, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	kubeNode(t, o, "c")
	o.ExpectWorkers("w-a", "w-b", "w-c")
	o.RunWorkers()
	changeNode(t, o, b, func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "mine", Effect: corev1.TaintEffectNoExecute})
	})
	o.ExpectWorkers("w-a", "w-c")
	changeNode(t, o, b, func(n *corev1.Node) { n.Spec.Taints, n.Spec.Unschedulable = nil, false })
	o.ExpectWorkers("w-a", "w-b", "w-c")

	// Another host name is another Slurm node.
	changeNode(t, o, a, func(n *corev1.Node) { n.Annotations[slinkyv1beta1.AnnotationHostnameOverride] = "gpu" })
	o.ExpectWorkers("w-b", "w-c", "w-gpu")

	// The worker that runs keeps the name.
	incumbent := operator.Get[corev1.Pod](o, "w-c").UID
	changeNode(t, o, b, func(n *corev1.Node) { n.Annotations[slinkyv1beta1.AnnotationHostnameOverride] = "c" })
	message := operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Stalled", metav1.ConditionTrue, "HostnameConflict")
	if want := "Node " + b.Name + ": host name c is that of the worker on Node " + o.Namespace + "-c already"; !strings.Contains(message, want) {
		t.Errorf("%q is not in %q", want, message)
	}
	o.ExpectWorkers("w-b", "w-c", "w-gpu")
	if p, err := operator.Find[corev1.Pod](o, "w-c"); err != nil || p.UID != incumbent {
		t.Errorf("w-c is %+v (%v)", p, err)
	}
}

func TestAtRestDaemonsCostNothing(t *testing.T) {
	t.Parallel()
	o, a, _ := daemons(t)
	o.Settle()
	o.Writes.Reset()
	changeNode(t, o, a, func(n *corev1.Node) { n.Annotations["heartbeat"] = "now" })
	o.Restart()
	o.Settle()
	o.Writes.ExpectNone(t)
}

func TestSwitchingTheScalingModeReplacesTheWorkers(t *testing.T) {
	t.Parallel()
	o, _, _ := daemons(t)
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) {
		n.Spec.ScalingMode, n.Spec.Replicas = slinkyv1beta1.ScalingModeStatefulSet, new(int32(2))
	})
	o.ExpectWorkers("w-0", "w-1")
	o.RunWorkers()
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.ScalingMode = slinkyv1beta1.ScalingModeDaemonSet })
	o.ExpectWorkers("w-a", "w-b")
}
