// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestAJobNeverEnds(t *testing.T) {
	t.Parallel()
	o, _ := operator.StartWorkersOn(t, 1, `partition: {enabled: true}`)
	job := o.Slurm.Submit(fake.Job{NodeList: []string{"w-0"}, CPUs: 1, User: "alice"})
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmAllocated == 1 })
	o.Scale(0)
	o.ExpectWaiting("w-0", fmt.Sprintf("waiting for job %d of alice, which has no time limit", job))
	if got := operator.Get[corev1.Pod](o, "w-0").Annotations[slinkyv1beta1.AnnotationPodDeadline]; got != "9999-12-31T23:59:59Z" {
		t.Errorf("its deadline is %q", got)
	}
	o.Settle()
	o.ExpectLeft("w-0")
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.DrainTimeout = &metav1.Duration{Duration: time.Second} })
	o.ExpectLeft()
}

func TestAnAdministratorDrainedTheNode(t *testing.T) {
	t.Parallel()
	o, _ := operator.StartWorkersOn(t, 1, `drainTimeout: 1s`)
	job := o.Slurm.Submit(fake.Job{NodeList: []string{"w-0"}, CPUs: 1})
	if err := o.Slurm.Update("root", "w-0", "DRAIN", "bad disk"); err != nil {
		t.Fatal(err)
	}
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmDrain == 1 && s.SlurmAllocated == 1 })
	o.Scale(0)
	o.ExpectWaiting("w-0", fmt.Sprintf("waiting for job %d of alice, which has no time limit", job))
	o.Settle() // drainTimeout is not for this drain
	o.ExpectLeft("w-0")
	o.Scale(1)
	o.Settle()
	if got := o.NodeState("w-0"); got != "MIXED+DRAIN+DYNAMIC_NORM bad disk" {
		t.Errorf("w-0 is %s", got)
	}
	o.Scale(0)
	o.Slurm.Finish(job)
	o.ExpectLeft()
}

func TestAJobThatStartsAtTheLastMomentIsNotKilled(t *testing.T) {
	t.Parallel()
	o, _ := operator.StartWorkersOn(t, 1, `partition: {enabled: true}`)
	var drained atomic.Bool
	var job atomic.Int64
	o.Slurm.SetFault(func(r *http.Request) *fake.Fault {
		switch status, _ := o.Slurm.Node("w-0"); {
		case r.Method != http.MethodGet || !slices.Contains(status.State, "DRAIN"):
		case !drained.Swap(true): // Slurm says for the first time that it is drained
		case job.Load() == 0: // and before it says so once more, somebody lets a job run there
			if err := o.Slurm.Update("root", "w-0", "UNDRAIN", ""); err != nil {
				t.Error(err)
			}
			job.Store(o.Slurm.Submit(fake.Job{NodeList: []string{"w-0"}, CPUs: 1}))
		}
		return nil
	})
	o.Scale(0)
	apiserver.Eventually(t, func() error {
		if job.Load() == 0 {
			return fmt.Errorf("there is no job yet")
		}
		return nil
	})
	o.Settle()
	o.ExpectLeft("w-0")
	if status, _ := o.Slurm.Job(job.Load()); !slices.Contains(status.State, "RUNNING") {
		t.Fatalf("the job is %v", status.State)
	}
	o.Slurm.Finish(job.Load())
	o.ExpectLeft()
}

func TestAnAdministratorsDrainIsNotTouched(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 2, `partition: {enabled: true}`)
	if err := o.Slurm.Update("root", "w-0", "DRAIN", "bad disk"); err != nil {
		t.Fatal(err)
	}
	if err := o.Slurm.Update("root", "w-1", "DRAIN", ""); err != nil {
		t.Fatal(err)
	}
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmDrain == 2 })
	o.Scale(3)
	o.ExpectWorkers(operator.WorkerNames(3)...)
	o.RunWorkers()
	operator.Change(o, "w-0", func(p *corev1.Pod) { p.Annotations[slinkyv1beta1.AnnotationPodCordon] = "true" })
	o.Settle()
	operator.Change(o, "w-0", func(p *corev1.Pod) { delete(p.Annotations, slinkyv1beta1.AnnotationPodCordon) })
	o.Settle()
	if got := o.NodeState("w-0"); got != "IDLE+DRAIN+DYNAMIC_NORM bad disk" {
		t.Errorf("w-0 is %s", got)
	}
	if got := o.NodeState("w-1"); got != "IDLE+DRAIN+DYNAMIC_NORM " {
		t.Errorf("w-1 is %s", got)
	}
}

func TestDrainTimeoutEndsTheWaiting(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 1, `drainTimeout: 2s`)
	o.Slurm.Submit(fake.Job{NodeList: []string{"w-0"}, CPUs: 1})
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmAllocated == 1 })
	start := time.Now()
	o.Scale(0)
	o.ExpectWorkers()
	if waited := time.Since(start); waited < time.Second {
		t.Errorf("the job had %s", waited)
	}
}
