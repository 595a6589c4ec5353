// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// replacesMachine announces maintenance of the machine of a worker, on which a job runs. When the job has ended the Node is deleted, and the
// test is the cloud that makes another machine of the same name.
func replacesMachine(t *testing.T, s *nodesScene, alice *user) {
	const maintenance = "NebiusMaintenanceScheduled"
	s.hasRebooter(t)
	worker := s.workerOn(t, s.frozen)
	before, machine := s.pod(t, worker).UID, s.kubernetesNode(t, s.frozen).UID
	pid := s.processOf(t, s.frozen)
	t.Cleanup(func() { // a kubelet does not make a Node again that somebody has deleted
		var n corev1.Node
		if err := s.Get(context.WithoutCancel(t.Context()), types.NamespacedName{Name: s.frozen}, &n); apierrors.IsNotFound(err) {
			s.comesBack(t, pid)
		}
	})
	job, end := alice.submitsBlocked(t, "--nodelist="+worker)

	// A node without workers has a maintenance as well. It is not ours.
	other := s.third(t)
	t.Cleanup(func() {
		_ = s.setNodeCondition(context.WithoutCancel(t.Context()), other, corev1.NodeCondition{Type: maintenance, Status: corev1.ConditionFalse, Reason: "Over"})
	})
	for _, name := range []string{s.frozen, other} {
		err := s.setNodeCondition(t.Context(), name, corev1.NodeCondition{Type: maintenance, Status: corev1.ConditionTrue, Reason: "Scheduled", Message: "on Friday"})
		if err != nil {
			t.Fatal(err)
		}
	}
	alice.seesShown(t, worker, node.MaintenanceReason+": "+maintenance)
	s.saysOutOfService(t, worker, "Maintenance")
	alice.awaits(t, job, "RUNNING")
	if p := s.pod(t, worker); p.UID != before || p.DeletionTimestamp != nil {
		t.Fatal("the worker goes while its job runs")
	}
	end(t)
	alice.awaits(t, job, "COMPLETED")
	ended := time.Now()
	s.awaitDeleted(t, s.frozen, machine)
	t.Logf("the Node was deleted %.1f s after the end of the job", time.Since(ended).Seconds())

	s.comesBack(t, pid)
	eventually(t, patient, s.frozen+" to be there again", func(ctx context.Context) error {
		var n corev1.Node
		if err := s.Get(ctx, types.NamespacedName{Name: s.frozen}, &n); err != nil {
			return err
		}
		if n.UID == machine {
			return errors.New("it is the old one")
		}
		patch := client.MergeFrom(n.DeepCopy())
		isPlaced(&n, 1)
		return s.Patch(ctx, &n, patch)
	})
	s.awaitPod(t, worker, before)
	t.Logf("the worker was ready %.1f s after the end of the job", time.Since(ended).Seconds())
	alice.seesNode(t, worker, "idle")
	if out := alice.runs(t, "srun --nodelist="+worker+" hostname"); out != worker {
		t.Errorf("a job on the new machine ran on %s, not on %s", out, worker)
	}
	if n := s.kubernetesNode(t, other); n.DeletionTimestamp != nil {
		t.Errorf("Node %s is deleted, which has no workers", other)
	}
}

// comesBack ends a machine whose Node was deleted, and starts it again.
func (s *nodesScene) comesBack(t *testing.T, pid int) {
	t.Helper()
	s.kill(t, pid)
	if err := s.startNodes(context.WithoutCancel(t.Context()), t); err != nil {
		t.Error(err)
	}
}

// third returns a Kubernetes node without workers.
func (s *nodesScene) third(t *testing.T) string {
	t.Helper()
	var all corev1.NodeList
	if err := s.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, n := range all.Items {
		if n.Name != s.frozen && n.Name != s.steady {
			return n.Name
		}
	}
	t.Fatalf("there are only %d Kubernetes nodes", len(all.Items))
	return ""
}

// awaitDeleted waits until a Node is gone, or is another one.
func (s *scene) awaitDeleted(t *testing.T, name string, was types.UID) {
	t.Helper()
	eventually(t, patient, "Node "+name+" to be deleted", func(ctx context.Context) error {
		var n corev1.Node
		err := s.Get(ctx, types.NamespacedName{Name: name}, &n)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		case n.UID == was:
			return fmt.Errorf("its conditions are %+v", n.Status.Conditions)
		}
		return nil
	})
}
