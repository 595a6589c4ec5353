// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// expectAttention waits until a pod shows that a person has to look at something, with a message that has this in it; an
// empty reason means that there is nothing to look at.
func expectAttention(t *testing.T, o *operator.Operator, pod, reason, message string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		for _, c := range operator.Get[corev1.Pod](o, pod).Status.Conditions {
			if c.Type == slinkyv1beta1.PodConditionNeedsAttention {
				if c.Reason != reason || !strings.Contains(c.Message, message) {
					return fmt.Errorf("%s: %s", c.Reason, c.Message)
				}
				return nil
			}
		}
		if reason != "" {
			return fmt.Errorf("%s says nothing", pod)
		}
		return nil
	})
}

func TestThePodIsEvicted(t *testing.T) {
	t.Parallel()
	o, _ := operator.StartWorkersOn(t, 2, `partition: {enabled: true}`)
	before := operator.Get[corev1.Pod](o, "w-1").UID
	o.SetPod("w-1", corev1.PodFailed) // what a kubelet under pressure leaves
	o.ExpectLeft(operator.WorkerNames(2)...)
	o.ExpectReplaced("w-1", before)
	o.ExpectLeft(operator.WorkerNames(2)...)
}

func TestTheKubernetesNodeIsTaintedNoSchedule(t *testing.T) {
	t.Parallel()
	o, nodes := operator.StartWorkersOn(t, 1, `partition: {enabled: true}`)
	o.ExpectNothingWritten(func() {
		o.ChangeKubeNode(nodes[0], func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule}}
		})
	})
}

func TestTheKubernetesNodeIsTaintedNoExecute(t *testing.T) {
	t.Parallel()
	o, nodes := operator.StartWorkersOn(t, 1, `partition: {enabled: true}`)
	tolerated := map[string]bool{}
	for _, toleration := range operator.Get[corev1.Pod](o, "w-0").Spec.Tolerations {
		tolerated[toleration.Key] = toleration.TolerationSeconds == nil && toleration.Effect == corev1.TaintEffectNoExecute
	}
	for _, key := range []string{slinkyv1beta1.TaintWorker, corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if !tolerated[key] {
			t.Errorf("a taint %s:NoExecute would end the worker", key)
		}
	}
	// Another taint: Kubernetes deletes the pod, whatever runs in it.
	before := operator.Get[corev1.Pod](o, "w-0").UID
	o.ChangeKubeNode(nodes[0], func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "out", Effect: corev1.TaintEffectNoExecute}}
	})
	o.Kill("w-0")
	o.ExpectReplaced("w-0", before)
}

func TestTheKubernetesNodeIsNotReady(t *testing.T) {
	t.Parallel()
	o, nodes := operator.StartWorkersOn(t, 2, `partition: {enabled: true}`)
	job := o.Slurm.Submit(fake.Job{NodeList: []string{"w-1"}, CPUs: 1})
	before := operator.Get[corev1.Pod](o, "w-1").UID
	o.SetKubeNodeReady(nodes[1], corev1.ConditionUnknown)
	o.SetReady("w-1", corev1.ConditionFalse) // what the node life cycle controller does
	expectAttention(t, o, "w-1", slinkyv1beta1.ReasonKubernetesNodeNotReady, "delete Node "+nodes[1])
	o.Settle()
	if p, err := operator.Find[corev1.Pod](o, "w-1"); err != nil || p.UID != before {
		t.Fatal("w-1 is deleted")
	}
	if status, _ := o.Slurm.Job(job); !slices.Contains(status.State, "RUNNING") {
		t.Errorf("the job is %v", status.State)
	}
	o.SetKubeNodeReady(nodes[1], corev1.ConditionTrue)
	o.SetReady("w-1", corev1.ConditionTrue)
	expectAttention(t, o, "w-1", "", "")
	if got := o.NodeState("w-1"); got != "MIXED+DYNAMIC_NORM " {
		t.Errorf("w-1 is %s", got)
	}
}

func TestTheKubernetesNodeIsLostAndDeleted(t *testing.T) {
	t.Parallel()
	o, nodes := operator.StartWorkersOn(t, 1, `partition: {enabled: true}`)
	before := operator.Get[corev1.Pod](o, "w-0").UID
	o.Slurm.Lose("w-0")
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmDown == 1 })
	o.DeleteKubeNode(nodes[0])
	o.Settle()
	if p, err := operator.Find[corev1.Pod](o, "w-0"); err != nil || p.UID != before {
		t.Fatal("w-0 is deleted by us")
	}
	o.Kill("w-0") // what the pod garbage collector does
	o.ExpectReplaced("w-0", before)
	o.Bind("w-0", o.KubeNode("another"))
	o.RunWorkers()
	o.ExpectNode("w-0", "IDLE+DYNAMIC_NORM ")
}

func TestTheKubernetesNodeIsRebooted(t *testing.T) {
	t.Parallel()
	o, _ := operator.StartWorkersOn(t, 1, `partition: {enabled: true}`)
	before := operator.Get[corev1.Pod](o, "w-0").UID
	o.SetReady("w-0", corev1.ConditionFalse)
	o.Slurm.Lose("w-0")
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmDown == 1 })
	o.Settle()
	o.Slurm.Register(fake.Node{Name: "w-0", CPUs: 4})
	o.SetReady("w-0", corev1.ConditionTrue)
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
	if p := operator.Get[corev1.Pod](o, "w-0"); p.UID != before {
		t.Error("w-0 is another pod")
	}
}

func TestTheKubernetesNodeIsRenamed(t *testing.T) {
	t.Parallel()
	o, nodes := operator.StartWorkersOn(t, 1, `partition: {enabled: true}`)
	o.ChangeKubeNode(nodes[0], func(n *corev1.Node) {
		n.Annotations = map[string]string{slinkyv1beta1.AnnotationTopologySpec: "default:leaf1", slinkyv1beta1.AnnotationFeatures: "a100"}
	})
	expectRecord(t, o, "w-0", nodes[0], "default:leaf1", "k8s/a100")
	before := operator.Get[corev1.Pod](o, "w-0").UID
	o.DeleteKubeNode(nodes[0])
	o.Kill("w-0")
	o.ExpectReplaced("w-0", before)
	renamed := o.KubeNode("renamed")
	o.ChangeKubeNode(renamed, func(n *corev1.Node) {
		n.Annotations = map[string]string{slinkyv1beta1.AnnotationTopologyLine: "default:leaf2", slinkyv1beta1.AnnotationFeatures: "h100"}
	})
	o.Bind("w-0", renamed)
	o.RunWorkers()
	expectRecord(t, o, "w-0", renamed, "default:leaf2", "k8s/h100")
}
