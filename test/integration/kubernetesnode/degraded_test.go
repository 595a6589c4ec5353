// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetesnode

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/controller/rebooter/rebooterplan"
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

var afterKill = node.RebootAfterKillTask()

func kubernetesNode(t *testing.T, o *operator.Operator, name string) *corev1.Node {
	t.Helper()
	var n corev1.Node
	if err := o.User.Get(t.Context(), client.ObjectKey{Name: name}, &n); err != nil {
		t.Fatal(err)
	}
	return &n
}

// expectCondition waits until a condition of a Kubernetes node has this status and reason.
func expectCondition(t *testing.T, o *operator.Operator, name string, kind corev1.NodeConditionType, want string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		c := health.ConditionOf(kubernetesNode(t, o, name), kind)
		if got := string(c.Status) + "/" + c.Reason; got != want {
			return fmt.Errorf("%s is %s (%s), want %s; the node says %+v", kind, got, c.Message, want, kubernetesNode(t, o, name).Status.Conditions)
		}
		return nil
	})
}

func TestAMachineWithAProcessThatCannotBeEndedIsRebooted(t *testing.T) {
	o, name := operator.StartWorkersOnOne(t, 2, `partition: {enabled: true}`)
	o.SetKubeNodeCondition(name, "Foreign", corev1.ConditionTrue)
	job := o.Slurm.Submit(fake.Job{NodeList: []string{"w-1"}, CPUs: 1})
	o.Settle() // slurmd gives up later than the pods were made
	if err := o.Slurm.Update("root", "w-0", "DRAIN", node.KillTaskFailed); err != nil {
		t.Fatal(err)
	}

	// Without a rebooter on the node it is not asked for a reboot, nor with one while that is switched off.
	o.RebootDegraded = true
	o.ExpectNothingWritten(o.Restart)
	o.RebootDegraded = false
	o.Restart()
	o.ExpectNothingWritten(func() { rebooterPod(t, o, name) })

	// Without the right it names the value of the chart that gives it.
	o.RebootDegraded = true
	o.Restart()
	apiserver.Eventually(t, func() error {
		if !strings.Contains(strings.Join(o.Errors(), "\n"), "set degradedNodes.reboot or nodeReplacement of the operator's chart") {
			return fmt.Errorf("it says %v", o.Errors())
		}
		return nil
	})
	grant(t, o, "kubernetes-nodes")
	expectCondition(t, o, name, health.NodeDegraded, "True/SlurmNodeDegraded")
	o.ExpectNode("w-0", "IDLE+DRAIN+DYNAMIC_NORM "+afterKill)
	o.ExpectNode("w-1", "MIXED+DRAIN+DYNAMIC_NORM "+node.RebootReason)

	// As long as a job runs nothing more happens, and another operator does the same.
	o.ExpectNothingWritten(o.Restart)
	o.Slurm.Finish(job)
	expectCondition(t, o, name, health.NodeDegraded, "True/NodeNeedReboot")
	expectCondition(t, o, name, health.NodeReboot, "True/NodeNeedReboot")
	o.ExpectNothingWritten(o.Restart)
	reboots(t, o, name)

	// The rebooter has gone to work, and the pods are made anew.
	expectCondition(t, o, name, health.NodeDegraded, "False/NodeRebooted")
	expectCondition(t, o, name, health.NodeReboot, "False/NodeRebooted")
	apiserver.Eventually(t, func() error {
		if n := kubernetesNode(t, o, name); n.Spec.Unschedulable || rebooterplan.NodeOf(n).Tainted {
			return fmt.Errorf("the node is %+v", n.Spec)
		}
		return nil
	})
	for _, pod := range operator.WorkerNames(2) {
		o.Bind(pod, name)
	}
	o.RunWorkers()
	o.ExpectNode("w-0", "IDLE+DYNAMIC_NORM ")
	o.ExpectNode("w-1", "IDLE+DYNAMIC_NORM ")
	expectCondition(t, o, name, "Foreign", "True/Test")
	expectEvents(t, o, name, "SlurmNodeDegraded", "NodeNeedReboot", "NodeRebooted")
	o.ExpectNothingWritten(o.Restart)
}

// reboots runs a rebooter until the machine goes down, and another one after it, which stays until the end of the test.
func reboots(t *testing.T, o *operator.Operator, name string) {
	t.Helper()
	down := make(chan struct{}, 1)
	stop := runRebooter(t, o, name, "boot-1", func() error { down <- struct{}{}; return nil })
	before := map[string]string{}
	for _, p := range o.Workers() {
		before[p.Name] = string(p.UID)
	}
	apiserver.Eventually(t, func() error {
		for _, p := range o.Workers() {
			if before[p.Name] == string(p.UID) && p.DeletionTimestamp != nil {
				o.Kill(p.Name)
			}
		}
		select {
		case <-down:
			return nil
		default:
			return fmt.Errorf("the machine was not told to reboot")
		}
	})
	stop()
	o.Slurm.Lose("w-0", "w-1")
	o.ExpectWorkers(operator.WorkerNames(2)...)
	t.Cleanup(runRebooter(t, o, name, "boot-2", func() error { return fmt.Errorf("it has been rebooted") }))
}

// expectEvents waits until the Events of a Kubernetes node have these reasons.
func expectEvents(t *testing.T, o *operator.Operator, name string, reasons ...string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		var list eventsv1.EventList
		if err := o.User.List(t.Context(), &list, client.InNamespace("default")); err != nil {
			return err
		}
		got := map[string]bool{}
		for _, e := range list.Items {
			got[e.Reason] = got[e.Reason] || e.Regarding.Name == name
		}
		for _, reason := range reasons {
			if !got[reason] {
				return fmt.Errorf("no event %s of Node %s: %v", reason, name, got)
			}
		}
		return nil
	})
}
