// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestScalingUpAddsAndScalingDownTakesIdleWorkersFirst(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 2, `partition: {enabled: true}`)
	o.Scale(3)
	o.ExpectWorkers("w-0", "w-1", "w-2")
	o.RunWorkers()
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmIdle == 3 })
	job := o.Slurm.Submit(fake.Job{NodeList: []string{"w-2"}, CPUs: 1})
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmAllocated == 1 && s.SlurmIdle == 2 })
	apiserver.Eventually(t, func() error {
		if l := operator.Get[corev1.Pod](o, "w-2").Labels; l[slinkyv1beta1.LabelPodProtect] != "true" {
			return fmt.Errorf("labels %v", l)
		}
		return nil
	})

	o.Scale(1)
	o.ExpectWorkers("w-2")
	if got := operator.Get[corev1.Pod](o, "w-2").Annotations["coxswain.dev/retired"]; got != "" {
		t.Errorf("w-2 is retired (%s)", got)
	}
	if got := o.NodeState("w-1"); got != "IDLE+DRAIN+DYNAMIC_NORM slurm-operator: Pod was cordoned pending termination" {
		t.Errorf("w-1 was deleted and not drained before: %s", got)
	}

	// The last one is busy: it is drained, and kept until its job ends.
	o.Scale(0)
	o.ExpectWaiting("w-2", "waiting for jobs to end")
	if state := o.NodeState("w-2"); !strings.HasPrefix(state, "MIXED+DRAIN") {
		t.Errorf("w-2 is %s", state)
	}
	o.Settle()
	if !operator.Exists[corev1.Pod](o, "w-2") {
		t.Fatal("a worker is deleted while a job runs on it")
	}
	if status, _ := o.Slurm.Job(job); !slices.Contains(status.State, "RUNNING") {
		t.Errorf("the job is %v", status.State)
	}
	o.Slurm.Finish(job)
	o.ExpectWorkers()
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
}

func TestScaleInTakesTheBusyWorkerWhoseJobsEndSoonest(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 3, `partition: {enabled: true}`)
	for i, limit := range []time.Duration{2 * time.Hour, time.Hour, 0} {
		o.Slurm.Submit(fake.Job{NodeList: operator.WorkerNames(3)[i : i+1], CPUs: 1, Limit: limit})
	}
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmAllocated == 3 })
	if calls := o.Slurm.Counters().Calls["GET jobs"]; calls > 0 {
		t.Errorf("jobs were listed %d times before anybody had to choose", calls)
	}
	o.Scale(2)
	o.ExpectWaiting("w-1", "waiting for jobs to end")
	o.Scale(1)
	o.ExpectWaiting("w-0", "waiting for jobs to end")
	o.Settle()
	o.ExpectLeft(operator.WorkerNames(3)...)
	if p := operator.Get[corev1.Pod](o, "w-2"); p.Annotations["coxswain.dev/retired"] != "" {
		t.Error("w-2, whose job has no end, goes too")
	}
}

func TestScalingBackUpUnretiresAndUndrains(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 2, `partition: {enabled: true}`)
	for _, n := range operator.WorkerNames(2) {
		o.Slurm.Submit(fake.Job{NodeList: []string{n}, CPUs: 1})
	}
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmAllocated == 2 })
	uid := operator.Get[corev1.Pod](o, "w-1").UID
	o.Scale(1)
	o.ExpectWaiting("w-1", "waiting for jobs to end")
	o.Scale(2)
	apiserver.Eventually(t, func() error {
		p, err := operator.Find[corev1.Pod](o, "w-1")
		if err != nil || p.UID != uid {
			return errors.Join(err, errors.New("w-1 was deleted"))
		}
		for _, c := range p.Status.Conditions {
			if c.Type == "coxswain.dev/Retiring" || c.Type == "SlurmNodeStateDrain" {
				return fmt.Errorf("condition %+v", c)
			}
		}
		if len(p.Annotations["coxswain.dev/retired"]+p.Annotations[slinkyv1beta1.AnnotationPodCordon]) > 0 {
			return fmt.Errorf("annotations %v", p.Annotations)
		}
		if state := o.NodeState("w-1"); strings.Contains(state, "DRAIN") {
			return fmt.Errorf("w-1 is %s", state)
		}
		return nil
	})
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
	o.Settle()
	o.Writes.Reset()
	o.Slurm.ResetCounters()
	o.Restart()
	o.Settle()
	o.Writes.ExpectNone(t)
	if writes := o.Slurm.Writes(); len(writes) > 0 {
		t.Errorf("Slurm is written to at rest: %+v", writes)
	}
}

func TestAScaleInCostsFewWrites(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 2, `partition: {enabled: true}`)
	o.Settle()
	o.Writes.Reset()
	o.Slurm.ResetCounters()
	o.Scale(1)
	o.ExpectWorkers("w-0")
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
	o.Settle()
	for _, w := range o.Writes.All() {
		t.Log(w)
	}
	t.Logf("and %d to Slurm: %+v", len(o.Slurm.Writes()), o.Slurm.Writes())
	// The mark, what the pod shows at each step, the deletion, and the status of the NodeSet at each step.
	if n := len(o.Writes.All()); n > 10 {
		t.Errorf("%d writes", n)
	}
	if n := len(o.Slurm.Writes()); n != 1 {
		t.Errorf("%d writes to Slurm", n)
	}
}
