// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-hpc/coxswain/test/walk"
)

// drainsByRebooter asks a rebooter for the drain of a Kubernetes node on which a job runs, and takes that back. A reboot is not asked
// for: the node is this machine.
func drainsByRebooter(t *testing.T, s *nodesScene, alice *user) {
	s.hasRebooter(t)
	worker := s.workerOn(t, s.frozen)
	before := s.pod(t, worker).UID
	job, end := alice.submitsBlocked(t, "--nodelist="+worker)
	t.Cleanup(func() { _ = s.asksForDrain(context.WithoutCancel(t.Context()), s.frozen, corev1.ConditionFalse) })
	if err := s.asksForDrain(t.Context(), s.frozen, corev1.ConditionTrue); err != nil {
		t.Fatal(err)
	}
	alice.seesShown(t, worker, "slurm-operator: Node was cordoned")
	s.saysOfDrain(t, "NodeDraining", s.namespace+"/"+worker)
	alice.awaits(t, job, "RUNNING")
	if got := s.pod(t, worker).UID; got != before {
		t.Fatal("the worker was replaced while its job ran")
	}
	end(t)
	alice.awaits(t, job, "COMPLETED")
	ended := time.Now()
	s.saysOfDrain(t, "NodeDrained", "")
	t.Logf("drained %.1f s after the end of the job", time.Since(ended).Seconds())
	n := s.kubernetesNode(t, s.frozen)
	if tainted := slices.ContainsFunc(n.Spec.Taints, isOfRebooter); !n.Spec.Unschedulable || !tainted {
		t.Errorf("the drained Kubernetes node is unschedulable: %t, has the taint: %t", n.Spec.Unschedulable, tainted)
	}
	if err := s.asksForDrain(t.Context(), s.frozen, corev1.ConditionFalse); err != nil {
		t.Fatal(err)
	}
	asked := time.Now()
	s.awaitPod(t, worker, before)
	t.Logf("the worker was ready again after %.1f s", time.Since(asked).Seconds())
	alice.seesNode(t, worker, "idle")
	if n := s.kubernetesNode(t, s.frozen); n.Spec.Unschedulable || slices.ContainsFunc(n.Spec.Taints, isOfRebooter) {
		t.Errorf("the Kubernetes node is back, and has %+v", n.Spec)
	}
}

// hasRebooter runs a rebooter on the frozen node until the test ends. Its ServiceAccount has the rights already.
func (s *nodesScene) hasRebooter(t *testing.T) {
	t.Helper()
	configurator, err := s.manifest(t, "rebooter.yaml", "NODE", s.frozen).Only("NodeConfigurator")
	if err != nil {
		t.Fatal(err)
	}
	s.apply(t, walk.Manifest{configurator})
	t.Cleanup(func() { _ = s.Delete(context.WithoutCancel(t.Context()), configurator) })
	s.awaitCondition(t, patient, configurator, "Ready", metav1.ConditionTrue)
}

func isOfRebooter(t corev1.Taint) bool { return t.Key == "node.kubernetes.io/NoExecute" }

// rebooters returns the value of the chart, as JSON, that gives ServiceAccounts of the scene the rights of a rebooter.
func (s *scene) rebooters(accounts ...string) string {
	list := []string{}
	for _, account := range accounts {
		list = append(list, fmt.Sprintf(`{"namespace": %q, "name": %q}`, s.namespace, account))
	}
	return "rebooter.serviceAccounts=[" + strings.Join(list, ",") + "]"
}

// sets sets values of the operator's chart, as JSON, and others when the test ends.
func (s *scene) sets(t *testing.T, value, after string) {
	t.Helper()
	set := func(ctx context.Context, value string) error {
		return s.helm(ctx, walk.Operator.Namespace, "upgrade", "coxswain", stage.repository.Path("helm", "coxswain"),
			"--reuse-values", "--wait", "--timeout=3m", "--set-json", value)
	}
	if err := set(t.Context(), value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set(context.WithoutCancel(t.Context()), after); err != nil {
			t.Error(err)
		}
	})
}

// helm runs a command of Helm about a namespace.
func (s *scene) helm(ctx context.Context, namespace string, args ...string) error {
	out, err := exec.CommandContext(ctx, stage.repository.Path("bin", "helm"), append(args, "--kubeconfig", s.Kubeconfig, "--namespace", namespace)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("helm %s: %w: %s", args[0], err, out)
	}
	return nil
}

// asksForDrain sets on a Kubernetes node whether its rebooter is to drain it.
func (s *scene) asksForDrain(ctx context.Context, node string, status corev1.ConditionStatus) error {
	return s.setNodeCondition(ctx, node, corev1.NodeCondition{Type: "SlurmNodeDrain", Status: status, Reason: "NodeNeedDrain", Message: "new kernel"})
}

// saysOfDrain waits until the rebooter reports of its drain what is wanted.
func (s *nodesScene) saysOfDrain(t *testing.T, reason, message string) {
	t.Helper()
	eventually(t, patient, "the rebooter to say "+reason+" "+message, func(context.Context) error {
		for _, c := range s.kubernetesNode(t, s.frozen).Status.Conditions {
			switch {
			case c.Type != "SlurmNodeDrain":
			case c.Reason == reason && strings.Contains(c.Message, message):
				return nil
			default:
				return fmt.Errorf("it says %s: %s", c.Reason, c.Message)
			}
		}
		return errors.New("it says nothing")
	})
}

func (s *scene) kubernetesNode(t *testing.T, name string) *corev1.Node {
	t.Helper()
	var n corev1.Node
	if err := s.Get(t.Context(), types.NamespacedName{Name: name}, &n); err != nil {
		t.Fatalf("reading Node %s: %v", name, err)
	}
	return &n
}
