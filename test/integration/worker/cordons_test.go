// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

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
	t.Parallel()
	o, nodes := operator.StartWorkersOn(t, 2, `partition: {enabled: true}`)
	o.ChangeKubeNode(nodes[0], func(n *corev1.Node) { n.Spec.Unschedulable = true })
	o.ExpectNode("w-0", "IDLE+DRAIN+DYNAMIC_NORM slurm-operator: Node was cordoned")
	expectAnnotations(t, o, "w-0", map[string]string{slinkyv1beta1.AnnotationPodCordon: "true", slinkyv1beta1.AnnotationNodeCordoned: "true"})
	if got := o.NodeState("w-1"); got != "IDLE+DYNAMIC_NORM " {
		t.Errorf("w-1 is %s", got)
	}
	o.ChangeKubeNode(nodes[0], func(n *corev1.Node) { n.Spec.Unschedulable = false })
	o.ExpectNode("w-0", "IDLE+DYNAMIC_NORM ")
	expectAnnotations(t, o, "w-0", nil)
	o.ExpectWorkers(operator.WorkerNames(2)...)
}

func TestACordonedKubernetesNodeSaysWhy(t *testing.T) {
	t.Parallel()
	o, nodes := operator.StartWorkersOn(t, 1, `partition: {enabled: true}`)
	o.ChangeKubeNode(nodes[0], func(n *corev1.Node) {
		n.Annotations = map[string]string{slinkyv1beta1.AnnotationNodeCordonReason: "RMA 4711"}
		n.Spec.Unschedulable = true
	})
	o.ExpectNode("w-0", "IDLE+DRAIN+DYNAMIC_NORM slurm-operator: RMA 4711")
}

func TestAUsersCordonOutlivesThatOfTheKubernetesNode(t *testing.T) {
	t.Parallel()
	o, nodes := operator.StartWorkersOn(t, 2, `partition: {enabled: true}`)
	operator.Change(o, "w-1", func(p *corev1.Pod) { p.Annotations[slinkyv1beta1.AnnotationPodCordon] = "true" })
	o.ExpectNode("w-1", "IDLE+DRAIN+DYNAMIC_NORM slurm-operator: Pod was cordoned")
	o.ChangeKubeNode(nodes[1], func(n *corev1.Node) { n.Spec.Unschedulable = true })
	expectAnnotations(t, o, "w-1", map[string]string{slinkyv1beta1.AnnotationPodCordon: "true", slinkyv1beta1.AnnotationNodeCordoned: "true"})
	o.ChangeKubeNode(nodes[1], func(n *corev1.Node) { n.Spec.Unschedulable = false })
	expectAnnotations(t, o, "w-1", map[string]string{slinkyv1beta1.AnnotationPodCordon: "true"})
	o.Settle()
	if got := o.NodeState("w-1"); got != "IDLE+DRAIN+DYNAMIC_NORM slurm-operator: Pod was cordoned" {
		t.Errorf("w-1 is %s", got)
	}
}

func TestAUsersCordonDrainsAndItsEndUndrains(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 1, `partition: {enabled: true}`)
	operator.Change(o, "w-0", func(p *corev1.Pod) { p.Annotations[slinkyv1beta1.AnnotationPodCordon] = "true" })
	apiserver.Eventually(t, func() error {
		if got := o.NodeState("w-0"); got != "IDLE+DRAIN+DYNAMIC_NORM slurm-operator: Pod was cordoned" {
			return fmt.Errorf("w-0 is %s", got)
		}
		return nil
	})
	operator.Change(o, "w-0", func(p *corev1.Pod) { delete(p.Annotations, slinkyv1beta1.AnnotationPodCordon) })
	apiserver.Eventually(t, func() error {
		if got := o.NodeState("w-0"); got != "IDLE+DYNAMIC_NORM " {
			return fmt.Errorf("w-0 is %s", got)
		}
		return nil
	})
}
