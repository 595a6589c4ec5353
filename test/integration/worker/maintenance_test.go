// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

const replaced = "[compute_maintenance] node replacement process: "

func TestTheMachineOfTheKubernetesNodeIsToBeReplaced(t *testing.T) {
	t.Parallel()
	o, nodes := operator.StartWorkersOn(t, 4, `partition: {enabled: true}`)
	if err := o.Slurm.Update("root", "w-3", "DRAIN", "bad disk"); err != nil {
		t.Fatal(err)
	}
	o.Settle()
	o.ChangeKubeNode(nodes[2], func(n *corev1.Node) { n.Labels = map[string]string{"spare": "yes"} })
	job := o.Slurm.Submit(fake.Job{NodeList: []string{"w-0"}})
	for _, name := range nodes {
		o.SetKubeNodeCondition(name, health.DefaultMaintenanceType, corev1.ConditionTrue)
	}
	o.ExpectNode("w-0", "ALLOCATED+DRAIN+DYNAMIC_NORM "+replaced+health.DefaultMaintenanceType)
	o.ExpectNode("w-1", "IDLE+DRAIN+DYNAMIC_NORM "+replaced+health.DefaultMaintenanceType)
	o.ExpectNoErrors()
	o.ExpectNothingWritten(o.Restart)
	if got := o.NodeState("w-2"); got != "IDLE+DYNAMIC_NORM " {
		t.Errorf("w-2, whose Kubernetes node has the label, is %s", got)
	}
	if status, _ := o.Slurm.Job(job); len(status.State) != 1 || status.State[0] != "RUNNING" {
		t.Errorf("the job is %v", status.State)
	}

	if got := o.NodeState("w-3"); got != "IDLE+DRAIN+DYNAMIC_NORM bad disk" {
		t.Errorf("w-3, which an administrator has drained, is %s", got)
	}

	// The last cause that goes brings the node back.
	o.SetKubeNodeCondition(nodes[0], health.HardwareIssuesSuspected, corev1.ConditionTrue)
	o.SetKubeNodeCondition(nodes[0], health.DefaultMaintenanceType, corev1.ConditionFalse)
	o.SetKubeNodeCondition(nodes[1], health.DefaultMaintenanceType, corev1.ConditionFalse)
	o.ExpectNode("w-1", "IDLE+DYNAMIC_NORM ")
	o.Settle()
	if got := o.NodeState("w-0"); got != "ALLOCATED+DRAIN+DYNAMIC_NORM "+replaced+health.DefaultMaintenanceType {
		t.Errorf("w-0 is %s", got)
	}
	o.SetKubeNodeCondition(nodes[0], health.HardwareIssuesSuspected, corev1.ConditionFalse)
	o.ExpectNode("w-0", "ALLOCATED+DYNAMIC_NORM ")
	o.ExpectWorkers(operator.WorkerNames(4)...)
}

func TestADrainOfSoperatorForMaintenanceIsEnded(t *testing.T) {
	t.Parallel()
	o, _ := operator.StartWorkersOn(t, 2, `partition: {enabled: true}`)
	for node, reason := range map[string]string{"w-0": "[node_problem] compute_maintenance: node replacement process", "w-1": "[node_problem] gpu_health_check: XID 79"} {
		if err := o.Slurm.Update("root", node, "DRAIN", reason); err != nil {
			t.Fatal(err)
		}
	}
	o.ExpectNode("w-0", "IDLE+DYNAMIC_NORM ")
	o.Settle()
	if got := o.NodeState("w-1"); got != "IDLE+DRAIN+DYNAMIC_NORM [node_problem] gpu_health_check: XID 79" {
		t.Errorf("w-1, which a check has drained, is %s", got)
	}
}
