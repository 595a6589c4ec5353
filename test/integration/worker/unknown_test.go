// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestSlurmctldRestartsInTheMiddleOfARetirement(t *testing.T) {
	t.Parallel()
	o, _ := operator.StartWorkersOn(t, 2, `partition: {enabled: true}`)
	job := o.Slurm.Submit(fake.Job{NodeList: []string{"w-1"}, CPUs: 1})
	other := o.Slurm.Submit(fake.Job{NodeList: []string{"w-0"}, CPUs: 1, Limit: time.Hour})
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmAllocated == 2 })
	o.Scale(0)
	o.ExpectNode("w-1", "MIXED+DRAIN+DYNAMIC_NORM slurm-operator: Pod was cordoned pending termination")
	o.Slurm.Stop()
	o.ExpectWaiting("w-1", "the state of the node in Slurm is not known: Slurm does not answer")
	o.Restart() // and the operator with it
	o.Settle()
	o.ExpectLeft(operator.WorkerNames(2)...)
	o.Slurm.Start(true)
	o.ExpectWaiting("w-1", fmt.Sprintf("waiting for job %d of alice, which has no time limit", job))
	o.Slurm.Finish(job)
	o.ExpectLeft("w-0")
	o.Slurm.Finish(other)
	o.ExpectLeft()
}

func TestTheOperatorIsRestarted(t *testing.T) {
	t.Parallel()
	o, nodes := operator.StartWorkersOn(t, 2, `partition: {enabled: true}`)
	o.ChangeKubeNode(nodes[1], func(n *corev1.Node) {
		n.Annotations = map[string]string{slinkyv1beta1.AnnotationTopologySpec: "default:leaf1", slinkyv1beta1.AnnotationFeatures: "a100"}
		n.Spec.Unschedulable = true
	})
	expectRecord(t, o, "w-1", nodes[1], "default:leaf1", "k8s/a100")
	o.ExpectNode("w-1", "IDLE+DRAIN+DYNAMIC_NORM slurm-operator: Node was cordoned")
	o.Slurm.Submit(fake.Job{NodeList: []string{"w-0"}, CPUs: 1})
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmAllocated == 1 && s.SlurmDrain == 1 })
	o.ExpectNothingWritten(o.Restart)
}

func TestWhatSlurmctldForgotIsNotDeleted(t *testing.T) {
	t.Parallel()
	o, _ := operator.StartWorkersOn(t, 3, `partition: {enabled: true}`)
	for _, name := range operator.WorkerNames(3) { // they should have registered long ago
		o.SetReadySince(name, time.Now().Add(-time.Hour))
	}
	o.Slurm.Stop()
	o.Slurm.Start(false)
	o.Restart() // the one that starts knows nothing of the nodes that there were
	// It believes in an absence of two minutes that it has seen itself.
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, 5*time.Minute, false, func(context.Context) (bool, error) {
		return meta.IsStatusConditionTrue(operator.Get[slinkyv1beta1.NodeSet](o, "w").Status.Conditions, slinkyv1beta1.ConditionWorkersUnknown), nil
	})
	if err != nil {
		t.Fatalf("waiting for condition WorkersUnknown: %v", err)
	}
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", slinkyv1beta1.ConditionWorkersUnknown, metav1.ConditionTrue, slinkyv1beta1.ReasonStateLost)
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionFalse, slinkyv1beta1.ReasonWorkersUnknown)
	o.Scale(0)
	apiserver.Eventually(t, func() error {
		for _, c := range operator.Get[corev1.Pod](o, "w-2").Status.Conditions {
			if c.Type == "coxswain.dev/Retiring" && strings.HasPrefix(c.Message, "not registered in Slurm, which seems to have lost its state") {
				return nil
			}
		}
		return fmt.Errorf("w-2 says %+v", operator.Get[corev1.Pod](o, "w-2").Status.Conditions)
	})
	o.Scale(3)
	// A user deletes two of them, and these register; the third may still run what Slurm has forgotten.
	for _, name := range operator.WorkerNames(2) {
		o.Kill(name)
	}
	o.ExpectWorkers(operator.WorkerNames(3)...)
	for _, name := range operator.WorkerNames(2) {
		o.Slurm.Register(fake.Node{Name: name, CPUs: 4})
	}
	o.Settle()
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", slinkyv1beta1.ConditionWorkersUnknown, metav1.ConditionTrue, slinkyv1beta1.ReasonStateLost)
	if p := operator.Get[corev1.Pod](o, "w-2"); p.DeletionTimestamp != nil || p.Annotations["coxswain.dev/retired"] != "" {
		t.Errorf("w-2 goes: %+v", p.ObjectMeta)
	}
	o.Slurm.Register(fake.Node{Name: "w-2", CPUs: 4})
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", slinkyv1beta1.ConditionWorkersUnknown, metav1.ConditionFalse, slinkyv1beta1.ReasonWorkersKnown)
}

func TestDeletionsAreBounded(t *testing.T) {
	t.Parallel()
	o, _ := operator.StartWorkersOn(t, 3, `partition: {enabled: true}`)
	o.Budget = 1
	o.Restart()
	o.Scale(0)
	apiserver.Eventually(t, func() error {
		for _, c := range operator.Get[slinkyv1beta1.NodeSet](o, "w").Status.Conditions {
			if c.Type == "Ready" && strings.Contains(c.Message, "retired (scale-in) and drained; waiting, because the limit of deletions per minute is reached in this cluster") {
				return nil
			}
		}
		return fmt.Errorf("nobody waits: %+v", operator.Get[slinkyv1beta1.NodeSet](o, "w").Status.Conditions)
	})
	o.Settle()
	left := slices.DeleteFunc(o.Workers(), func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	if len(left) != 2 {
		t.Errorf("%d workers are left of 3 when one may go", len(left))
	}
}

func TestNothingIsDeletedWhileSlurmIsSilent(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 2, `partition: {enabled: true}`)
	o.Slurm.Stop()
	o.Scale(0)
	o.ExpectWaiting("w-1", "the state of the node in Slurm is not known: Slurm does not answer")
	o.Settle()
	o.ExpectWorkers("w-0", "w-1")
	if s := operator.Get[slinkyv1beta1.NodeSet](o, "w").Status; s.SlurmIdle != 2 {
		t.Errorf("what Slurm said last is forgotten: %+v", s)
	}
	o.Slurm.Start(true)
	o.ExpectWorkers()
}

func TestNothingIsDeletedWhenSlurmctldCameUpEmpty(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 3, `partition: {enabled: true}`)
	o.Slurm.Stop()
	o.Slurm.Start(false)
	o.Scale(0)
	apiserver.Eventually(t, func() error {
		p, err := operator.Find[corev1.Pod](o, "w-2")
		if err != nil {
			return err
		}
		for _, c := range p.Status.Conditions {
			if c.Type == "coxswain.dev/Retiring" && strings.Contains(c.Message, "Slurm lists 0 nodes and listed 3 before") {
				return nil
			}
		}
		return fmt.Errorf("conditions %+v", p.Status.Conditions)
	})
	o.Settle()
	o.ExpectWorkers(operator.WorkerNames(3)...)
}

func TestNothingIsDeletedWithoutARestApi(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 2, `partition: {enabled: true}`)
	operator.Delete[slinkyv1beta1.RestApi](o, "demo")
	o.Scale(1)
	o.ExpectWaiting("w-1", "the state of the node in Slurm is not known: no RestApi refers to Controller demo")
	o.Settle()
	o.ExpectWorkers("w-0", "w-1")
	operator.Create[slinkyv1beta1.RestApi](o, operator.ARestAPI)
	o.ExpectWorkers("w-0")
}
