// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetesnode

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

const forMaintenance = node.MaintenanceReason + ": NebiusMaintenanceScheduled"

// expectNoNode waits until a Node is gone.
func expectNoNode(t *testing.T, o *operator.Operator, name string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		var n corev1.Node
		if err := o.User.Get(t.Context(), client.ObjectKey{Name: name}, &n); !apierrors.IsNotFound(err) {
			return errors.Join(err, fmt.Errorf("Node %s is there: %+v", name, n.Status.Conditions))
		}
		return nil
	})
}

// anew makes a Node of this name, as another machine has it, and moves pods there.
func anew(t *testing.T, o *operator.Operator, name string, pods ...string) {
	t.Helper()
	if err := o.User.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		o.Bind(pod, name)
	}
	o.RunWorkers()
}

func TestAMachineIsReplacedWhenItsJobsHaveEnded(t *testing.T) {
	o, name := operator.StartWorkersOnOne(t, 2, `partition: {enabled: true}`)
	rebooterPod(t, o, name)
	job := o.Slurm.Submit(fake.Job{NodeList: []string{"w-1"}, CPUs: 1})
	o.SetKubeNodeCondition(name, health.DefaultMaintenanceType, corev1.ConditionTrue)
	o.ExpectNode("w-0", "IDLE+DRAIN+DYNAMIC_NORM "+forMaintenance)
	o.ExpectNode("w-1", "MIXED+DRAIN+DYNAMIC_NORM "+forMaintenance)
	o.Slurm.Finish(job)
	o.ExpectNode("w-1", "IDLE+DRAIN+DYNAMIC_NORM "+forMaintenance)
	o.ExpectNothingWritten(func() { o.Settle() }) // nobody has asked for more

	// Without the right it names the value of the chart that gives it.
	o.ReplaceNodes = true
	o.Restart()
	awaitError(t, o, "set degradedNodes.reboot or nodeReplacement of the operator's chart")
	grant(t, o, "kubernetes-nodes")
	expectCondition(t, o, name, health.NodeMaintenance, "True/NodeNeedDrain")
	expectCondition(t, o, name, health.NodeDrain, "True/NodeNeedDrain")
	o.ExpectNothingWritten(o.Restart)

	// A maintenance that is called off is taken back, and announced again.
	o.SetKubeNodeCondition(name, health.DefaultMaintenanceType, corev1.ConditionFalse)
	expectCondition(t, o, name, health.NodeMaintenance, "False/NodeUndrained")
	expectCondition(t, o, name, health.NodeDrain, "False/NodeUndrained")
	o.ExpectNode("w-0", "IDLE+DYNAMIC_NORM ")
	o.SetKubeNodeCondition(name, health.DefaultMaintenanceType, corev1.ConditionTrue)
	expectCondition(t, o, name, health.NodeDrain, "True/NodeNeedDrain")

	stop := runRebooter(t, o, name, "boot-1", func() error { return errors.New("nobody has asked for a reboot") })
	defer stop()
	killEvicted(t, o)
	awaitError(t, o, "deleting Node "+name)
	if err := o.User.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Node{}); err != nil {
		t.Fatalf("without the right to delete it the Node is gone: %v", err)
	}
	grant(t, o, "node-replacement")
	expectNoNode(t, o, name)
	expectEvents(t, o, name, "NodeMaintenance", "NodeMaintenanceOver", "NodeReplaced")

	o.ExpectWorkers(operator.WorkerNames(2)...)
	anew(t, o, name, operator.WorkerNames(2)...)
	o.ExpectNode("w-0", "IDLE+DYNAMIC_NORM ")
	o.ExpectNode("w-1", "IDLE+DYNAMIC_NORM ")
	o.ExpectNothingWritten(o.Restart)
}

// killEvicted ends the workers that are evicted, as kubelets do, until both pods are other ones.
func killEvicted(t *testing.T, o *operator.Operator) {
	t.Helper()
	before := map[string]string{}
	for _, p := range o.Workers() {
		before[p.Name] = string(p.UID)
	}
	apiserver.Eventually(t, func() error {
		left := 0
		for _, p := range o.Workers() {
			if before[p.Name] != string(p.UID) {
				continue
			}
			left++
			if p.DeletionTimestamp != nil {
				o.Kill(p.Name)
				o.Slurm.Lose(p.Name)
			}
		}
		if left > 0 {
			return fmt.Errorf("%d workers of %d are there", left, len(before))
		}
		return nil
	})
}

// awaitError waits until the operator logs an error.
func awaitError(t *testing.T, o *operator.Operator, want string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		if !strings.Contains(strings.Join(o.Errors(), "\n"), want) {
			return fmt.Errorf("it says %v", o.Errors())
		}
		return nil
	})
}

func TestANodeThatIsNotReadyIsReplacedWhenNoJobIsThere(t *testing.T) {
	o, name := operator.StartWorkersOnOne(t, 2, `partition: {enabled: true}`)
	grant(t, o, "kubernetes-nodes")
	grant(t, o, "node-replacement")
	job := o.Slurm.Submit(fake.Job{NodeList: []string{"w-1"}, CPUs: 1})
	o.NotReadyTimeout = time.Second
	o.Restart()

	other := o.KubeNode("without-workers")
	o.SetKubeNodeCondition(other, "Ready", corev1.ConditionUnknown)
	o.SetKubeNodeCondition(name, "Ready", corev1.ConditionUnknown)
	expectCondition(t, o, name, health.NodeNotReady, "True/NodeNotReady")
	o.ExpectNode("w-0", "IDLE+DRAIN+DYNAMIC_NORM "+node.MaintenanceReason+": SlurmNodeNotReady")
	o.ExpectNode("w-1", "MIXED+DRAIN+DYNAMIC_NORM "+node.MaintenanceReason+": SlurmNodeNotReady")
	o.ExpectNothingWritten(o.Restart) // its job runs

	o.SetKubeNodeCondition(name, "Ready", corev1.ConditionTrue)
	expectCondition(t, o, name, health.NodeNotReady, "False/NodeReady")
	o.ExpectNode("w-0", "IDLE+DYNAMIC_NORM ")
	o.ExpectNode("w-1", "MIXED+DYNAMIC_NORM ")

	o.SetKubeNodeCondition(name, "Ready", corev1.ConditionUnknown)
	o.ExpectNode("w-1", "MIXED+DRAIN+DYNAMIC_NORM "+node.MaintenanceReason+": SlurmNodeNotReady")
	if err := o.User.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Node{}); err != nil {
		t.Fatal(err)
	}
	o.Slurm.Finish(job)
	expectNoNode(t, o, name)
	expectEvents(t, o, name, "NodeNotReady", "NodeReady", "NodeReplaced")
	if err := o.User.Get(t.Context(), client.ObjectKey{Name: other}, &corev1.Node{}); err != nil {
		t.Errorf("a Node without workers is gone: %v", err)
	}
}

// The state of a node does not show a suspended job, and without the protection of its pod nothing else in Kubernetes does.
func TestANodeStaysWhileAJobIsSuspendedThere(t *testing.T) {
	o, name := operator.StartWorkersOnOne(t, 2, `partition: {enabled: true}, workloadDisruptionProtection: false`)
	grant(t, o, "kubernetes-nodes")
	grant(t, o, "node-replacement")
	job := o.Slurm.Submit(fake.Job{NodeList: []string{"w-1"}, CPUs: 1})
	o.ExpectNode("w-1", "MIXED+DYNAMIC_NORM ")
	o.Slurm.Suspend(job)
	o.ExpectNode("w-1", "IDLE+DYNAMIC_NORM ")
	o.NotReadyTimeout = time.Second
	o.Restart()
	o.SetKubeNodeCondition(name, "Ready", corev1.ConditionUnknown)
	expectCondition(t, o, name, health.NodeNotReady, "True/NodeNotReady")
	o.ExpectNode("w-1", "IDLE+DRAIN+DYNAMIC_NORM "+node.MaintenanceReason+": SlurmNodeNotReady")
	o.ExpectNothingWritten(o.Restart)
	if err := o.User.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Node{}); err != nil {
		t.Fatalf("the Node is gone, with a job: %v", err)
	}
	o.Slurm.Cancel(job)
	expectNoNode(t, o, name)
}
