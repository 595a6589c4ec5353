// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// The tests of this file are the rows of the table "When something fails" of docs/workers.md, by the names of the rows.

// workersOn is workers with one Kubernetes node for each, whose names it returns.
func workersOn(t *testing.T, replicas int, spec string) (*operator.Operator, []string) {
	t.Helper()
	o := operator.Start(t)
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {}}`)
	operator.Create[slinkyv1beta1.RestApi](o, aRestAPI)
	operator.Create[slinkyv1beta1.NodeSet](o, fmt.Sprintf(`{metadata: {name: w}, spec: {controllerRef: {name: demo}, replicas: %d, %s}}`, replicas, spec))
	expectWorkers(t, o, names(replicas)...)
	var nodes []string
	for i, name := range names(replicas) {
		nodes = append(nodes, o.KubeNode(fmt.Sprintf("node-%d", i)))
		o.Bind(name, nodes[i])
	}
	o.RunWorkers()
	expectStatus(t, o, func(s slinkyv1beta1.NodeSetStatus) bool { return int(s.SlurmIdle) == replicas })
	return o, nodes
}

// expectNode waits until slurmctld has this on a node: its state and its reason.
func expectNode(t *testing.T, o *operator.Operator, name, want string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		if got := nodeState(o, name); got != want {
			return fmt.Errorf("%s is %q, want %q", name, got, want)
		}
		return nil
	})
}

// expectAnnotations waits until a pod has exactly these of the annotations by which it is cordoned.
func expectAnnotations(t *testing.T, o *operator.Operator, pod string, want map[string]string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		have := operator.Get[corev1.Pod](o, pod).Annotations
		for _, key := range []string{slinkyv1beta1.AnnotationPodCordon, slinkyv1beta1.AnnotationNodeCordoned} {
			if have[key] != want[key] {
				return fmt.Errorf("%s of %s is %q, want %q", key, pod, have[key], want[key])
			}
		}
		return nil
	})
}

func TestTheKubernetesNodeIsCordoned(t *testing.T) {
	o, nodes := workersOn(t, 2, `partition: {enabled: true}`)
	o.ChangeKubeNode(nodes[0], func(n *corev1.Node) { n.Spec.Unschedulable = true })
	expectNode(t, o, "w-0", "IDLE+DRAIN+DYNAMIC_NORM slurm-operator: Node was cordoned")
	expectAnnotations(t, o, "w-0", map[string]string{slinkyv1beta1.AnnotationPodCordon: "true", slinkyv1beta1.AnnotationNodeCordoned: "true"})
	if got := nodeState(o, "w-1"); got != "IDLE+DYNAMIC_NORM " {
		t.Errorf("w-1 is %s", got)
	}
	o.ChangeKubeNode(nodes[0], func(n *corev1.Node) { n.Spec.Unschedulable = false })
	expectNode(t, o, "w-0", "IDLE+DYNAMIC_NORM ")
	expectAnnotations(t, o, "w-0", nil)
	expectWorkers(t, o, names(2)...)
}

func TestACordonedKubernetesNodeSaysWhy(t *testing.T) {
	o, nodes := workersOn(t, 1, `partition: {enabled: true}`)
	o.ChangeKubeNode(nodes[0], func(n *corev1.Node) {
		n.Annotations = map[string]string{slinkyv1beta1.AnnotationNodeCordonReason: "RMA 4711"}
		n.Spec.Unschedulable = true
	})
	expectNode(t, o, "w-0", "IDLE+DRAIN+DYNAMIC_NORM slurm-operator: RMA 4711")
}

func TestAUsersCordonOutlivesThatOfTheKubernetesNode(t *testing.T) {
	o, nodes := workersOn(t, 2, `partition: {enabled: true}`)
	operator.Change(o, "w-1", func(p *corev1.Pod) { p.Annotations[slinkyv1beta1.AnnotationPodCordon] = "true" })
	expectNode(t, o, "w-1", "IDLE+DRAIN+DYNAMIC_NORM slurm-operator: Pod was cordoned")
	o.ChangeKubeNode(nodes[1], func(n *corev1.Node) { n.Spec.Unschedulable = true })
	expectAnnotations(t, o, "w-1", map[string]string{slinkyv1beta1.AnnotationPodCordon: "true", slinkyv1beta1.AnnotationNodeCordoned: "true"})
	o.ChangeKubeNode(nodes[1], func(n *corev1.Node) { n.Spec.Unschedulable = false })
	expectAnnotations(t, o, "w-1", map[string]string{slinkyv1beta1.AnnotationPodCordon: "true"})
	o.Settle()
	if got := nodeState(o, "w-1"); got != "IDLE+DRAIN+DYNAMIC_NORM slurm-operator: Pod was cordoned" {
		t.Errorf("w-1 is %s", got)
	}
}
