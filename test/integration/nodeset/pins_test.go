// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// expectPin waits until w-0 is not scheduled and is bound to a Kubernetes node, or to none.
func expectPin(t *testing.T, o *operator.Operator, node string) {
	t.Helper()
	const pod = "w-0"
	apiserver.Eventually(t, func() error {
		p, err := operator.Find[corev1.Pod](o, pod)
		if err != nil || p.Spec.NodeName != "" || p.Annotations[slinkyv1beta1.AnnotationNode] != node {
			return fmt.Errorf("%s is on %q, and bound to %q, not %q: %w", pod, p.Spec.NodeName, p.Annotations[slinkyv1beta1.AnnotationNode], node, err)
		}
		return nil
	})
}

// unschedulable has the scheduler report that it has found no node for a pod.
func unschedulable(t *testing.T, o *operator.Operator, pod, message string) {
	t.Helper()
	p := operator.Get[corev1.Pod](o, pod)
	patch := client.StrategicMergeFrom(p.DeepCopy())
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message,
	})
	if err := o.User.Status().Patch(t.Context(), p, patch); err != nil {
		t.Fatal(err)
	}
}

// expectWords waits until NodeSet w has something in condition Ready.
func expectWords(t *testing.T, o *operator.Operator, want string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		c := meta.FindStatusCondition(operator.Get[slinkyv1beta1.NodeSet](o, "w").Status.Conditions, slinkyv1beta1.ConditionReady)
		if c == nil || !strings.Contains(c.Message, want) {
			return fmt.Errorf("condition Ready is %+v, want %q", c, want)
		}
		return nil
	})
}

func expectPins(o *operator.Operator, zero, one string) {
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool {
		return s.OrdinalToNode["0"] == zero && s.OrdinalToNode["1"] == one
	})
}

// startPinned starts a cluster with Kubernetes nodes a and b and a NodeSet of two workers with pins, of which w-0 runs on a.
func startPinned(t *testing.T, spec string) (o *operator.Operator, a, b *corev1.Node) {
	t.Helper()
	o = operator.Start(t)
	a, b = kubeNode(t, o, "a"), kubeNode(t, o, "b")
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {}}`)
	operator.Create[slinkyv1beta1.NodeSet](o, `{metadata: {name: w}, spec: {controllerRef: {name: demo}, replicas: 2, pinToNode: true`+spec+`}}`)
	o.ExpectWorkers("w-0", "w-1")
	o.Bind("w-0", a.Name)
	o.SetPod("w-0", corev1.PodRunning)
	expectPins(o, a.Name, "")
	return o, a, b
}

func TestAPinnedWorkerGoesElsewhereWhenAnotherOneHasItsNode(t *testing.T) {
	t.Parallel()
	o, a, b := startPinned(t, ``)
	o.Kill("w-0")
	expectPin(t, o, a.Name)
	o.Bind("w-1", a.Name) // which is free at the moment
	expectPin(t, o, "")
	expectPins(o, "", a.Name)
	unschedulable(t, o, "w-0", "0/2 nodes are available: 1 node(s) had volume node affinity conflict")
	expectWords(t, o, "; w-0 is not scheduled: 0/2 nodes are available: 1 node(s) had volume node affinity conflict")
	o.Bind("w-0", b.Name)
	expectPins(o, b.Name, a.Name)
}

func TestWorkersThatShareAPinnedNodeDoSoWhileThereIsRoom(t *testing.T) {
	t.Parallel()
	o, a, b := startPinned(t, `, oversubscribeNode: true`)
	o.Bind("w-1", a.Name)
	expectPins(o, a.Name, a.Name)
	o.Kill("w-0")
	expectPin(t, o, a.Name)
	unschedulable(t, o, "w-0", "0/2 nodes are available: 1 Insufficient cpu")
	expectPin(t, o, "")
	o.Bind("w-0", b.Name)
	expectPins(o, b.Name, a.Name)
}

func TestWhatAPinnedWorkerWaitsForIsTold(t *testing.T) {
	t.Parallel()
	o, a, _ := startPinned(t, ``)
	changeNode(t, o, a, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	o.Kill("w-0")
	expectPin(t, o, a.Name)
	unschedulable(t, o, "w-0", "0/2 nodes are available: 1 node(s) were unschedulable")
	expectWords(t, o, "; w-0 waits for Kubernetes node "+a.Name+", to which it is pinned: it is cordoned")
	// A user who does not want to wait removes the pin.
	set := operator.Get[slinkyv1beta1.NodeSet](o, "w")
	patch := client.MergeFrom(set.DeepCopy())
	delete(set.Status.OrdinalToNode, "0")
	if err := o.User.Status().Patch(t.Context(), set, patch); err != nil {
		t.Fatal(err)
	}
	expectPin(t, o, "")
}

func TestAPinnedWorkerComesBackToItsNode(t *testing.T) {
	t.Parallel()
	o := operator.Start(t)
	a, b := kubeNode(t, o, "a"), kubeNode(t, o, "b")
	// Workers of this scaling mode are not called after nodes: another node that asks for the host name b means nothing.
	changeNode(t, o, a, func(n *corev1.Node) { n.Annotations[slinkyv1beta1.AnnotationHostnameOverride] = "b" })
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {}}`)
	operator.Create[slinkyv1beta1.RestApi](o, operator.ARestAPI)
	operator.Create[slinkyv1beta1.NodeSet](o, `{metadata: {name: w}, spec: {controllerRef: {name: demo}, replicas: 1, pinToNode: true}}`)
	o.ExpectWorkers("w-0")
	o.Bind("w-0", b.Name)
	o.RunWorkers()
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return s.OrdinalToNode["0"] == b.Name })
	o.Kill("w-0")
	expectPin(t, o, b.Name)
	// A node that does not exist any more would keep the worker away for ever.
	if err := o.User.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	expectPin(t, o, "")
	o.Bind("w-0", a.Name)
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return s.OrdinalToNode["0"] == a.Name })
}
