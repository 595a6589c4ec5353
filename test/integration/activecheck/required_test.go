// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheck

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// waiting is the state of a node that waits for checks.
const waiting = "IDLE+DRAIN+DYNAMIC_NORM slurm-operator: waits for checks"

// expectRequired waits until the workers of the cluster need these checks.
func expectRequired(t *testing.T, o *operator.Operator, want ...string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		if got := operator.Get[slinkyv1beta1.NodeSet](o, "demo-worker").Spec.RequiredChecks; !slices.Equal(got, want) {
			return fmt.Errorf("the NodeSet requires %v, want %v", got, want)
		}
		return nil
	})
}

// size is the number of workers of the cluster.
func size(o *operator.Operator, n int32) {
	operator.Change(o, "demo", func(c *nebiusv1.SlurmCluster) { c.Spec.SlurmNodes.Worker.Size = n })
}

// startOn starts a worker on a Kubernetes node, and a slurmd in it.
func startOn(t *testing.T, o *operator.Operator, pod, node string) {
	t.Helper()
	operator.ExpectExists[corev1.Pod](o, pod)
	o.Bind(pod, node)
	o.RunWorkers()
}

// machineJob waits for the Job of a check on a Kubernetes node.
func machineJob(t *testing.T, o *operator.Operator, node string) *batchv1.Job {
	t.Helper()
	var found *batchv1.Job
	apiserver.Eventually(t, func() error {
		var list batchv1.JobList
		if err := o.User.List(t.Context(), &list, client.InNamespace(o.Namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if j := &list.Items[i]; strings.HasPrefix(j.Annotations[slinkyv1beta1.AnnotationMachine], node+"/") && j.DeletionTimestamp == nil {
				found = j
				return nil
			}
		}
		return errors.New("there is no Job for " + node)
	})
	return found
}

// expectOpen waits until a Slurm node takes jobs.
func expectOpen(t *testing.T, o *operator.Operator, name string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		if got := o.NodeState(name); !strings.HasPrefix(got, "IDLE+DYNAMIC_NORM ") {
			return fmt.Errorf("%s is %s", name, got)
		}
		return nil
	})
}

func TestANewWorkerTakesJobsOnceARequiredCheckHasPassedOnItsMachine(t *testing.T) {
	t.Parallel()
	o := start(t)
	check(o, "disk", "requiredBeforeJobs: true, runAfterCreation: false")
	expectRequired(t, o, "disk")
	o.Settle()
	expectOpen(t, o, "worker-0") // which ran before
	node := o.KubeNode("new")
	size(o, 2)
	startOn(t, o, "demo-worker-1", node)
	o.ExpectNode("worker-1", waiting)
	job := o.Slurm.Submit(fake.Job{NodeList: []string{"worker-1"}})
	j := machineJob(t, o, node)
	if !operator.Get[corev1.Pod](o, "demo-worker-1").CreationTimestamp.Before(&j.CreationTimestamp) && j.Spec.TTLSecondsAfterFinished == nil {
		t.Errorf("the Job stays for ever: %+v", j.Spec)
	}
	setJob(t, o, j.Name, batchv1.JobFailed)
	apiserver.Eventually(t, func() error {
		return told(t, o, "worker demo-worker-1 takes no jobs: Job "+j.Name+" failed: BackoffLimitExceeded: it ended")
	})
	apiserver.Eventually(t, func() error {
		for _, c := range operator.Get[corev1.Pod](o, "demo-worker-1").Status.Conditions {
			if c.Type == slinkyv1beta1.PodConditionOutOfService && c.Reason == slinkyv1beta1.ReasonWaitsForChecks && strings.Contains(c.Message, "disk: Job "+j.Name+" failed") {
				return nil
			}
		}
		return errors.New("the pod does not say what it waits for")
	})
	if err := o.User.Delete(t.Context(), j, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	apiserver.Eventually(t, func() error {
		if now := machineJob(t, o, node); now.UID == j.UID {
			return errors.New("the check is not tried again")
		}
		return nil
	})
	o.Settle()
	o.ExpectNode("worker-1", waiting)
	if status, _ := o.Slurm.Job(job); !slices.Contains(status.State, "PENDING") {
		t.Errorf("a job began before the check had passed: %v", status.State)
	}
	setJob(t, o, j.Name, batchv1.JobComplete)
	apiserver.Eventually(t, func() error {
		if status, _ := o.Slurm.Job(job); !slices.Contains(status.State, "RUNNING") {
			return fmt.Errorf("the job is %v, and the node %s", status.State, o.NodeState("worker-1"))
		}
		return nil
	})
	if last := operator.Get[nebiusv1alpha1.ActiveCheck](o, "disk").Status.K8sJobsStatus; last != nil {
		t.Errorf("the runs on machines are taken for others: %+v", last)
	}
	o.Settle()
	o.ExpectNothingWritten(o.Restart)
}

func TestWorkersThatWaitForACheckGoAndOpen(t *testing.T) {
	t.Parallel()
	o := start(t)
	check(o, "disk", "requiredBeforeJobs: true, runAfterCreation: false")
	expectRequired(t, o, "disk")
	size(o, 3)
	for _, name := range []string{"1", "2"} {
		startOn(t, o, "demo-worker-"+name, o.KubeNode("node-"+name))
		o.ExpectNode("worker-"+name, waiting)
	}
	size(o, 1) // worker-0 goes first, since it has no Kubernetes node
	apiserver.Eventually(t, func() error {
		if operator.Get[corev1.Pod](o, "demo-worker-2").DeletionTimestamp == nil {
			return errors.New("demo-worker-2 is not deleted")
		}
		return nil
	})
	o.ExpectNode("worker-1", waiting)
	operator.Change(o, "disk", func(c *nebiusv1alpha1.ActiveCheck) { c.Spec.RequiredBeforeJobs = false })
	expectRequired(t, o)
	expectOpen(t, o, "worker-1")
	o.ExpectNoErrors()
}

func TestARecordThatIsThereIsDrainedBeforeTheSlurmdOfAnUncheckedMachineRegisters(t *testing.T) {
	t.Parallel()
	o := start(t)
	check(o, "disk", "requiredBeforeJobs: true, runAfterCreation: false")
	expectRequired(t, o, "disk")
	o.Slurm.Lose("worker-0")
	o.Settle()
	if err := o.User.Delete(t.Context(), operator.Get[corev1.Pod](o, "demo-worker-0"), client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	node := o.KubeNode("other")
	apiserver.Eventually(t, func() error {
		if got := o.NodeState("worker-0"); !strings.HasPrefix(got, "DOWN+DRAIN+") || !strings.HasSuffix(got, "waits for checks") {
			return fmt.Errorf("worker-0 is %s", got)
		}
		return nil
	})
	startOn(t, o, "demo-worker-0", node)
	o.ExpectNode("worker-0", waiting)
	setJob(t, o, machineJob(t, o, node).Name, batchv1.JobComplete)
	expectOpen(t, o, "worker-0")
	o.ExpectNoErrors()
}
