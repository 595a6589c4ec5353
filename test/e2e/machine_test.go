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
	s.sets(t, "nodeReplacement.enabled=true", "nodeReplacement.enabled=false")
	s.hasRebooter(t)
	worker := s.workerOn(t, s.frozen)
	before, machine := s.pod(t, worker).UID, s.kubernetesNode(t, s.frozen).UID
	job, end := alice.submitsBlocked(t, "--nodelist="+worker)

	// A node without workers has a maintenance as well. It is not ours.
	t.Cleanup(func() {
		_ = s.setNodeCondition(context.WithoutCancel(t.Context()), dottedNode, corev1.NodeCondition{Type: maintenance, Status: corev1.ConditionFalse, Reason: "Over"})
	})
	for _, name := range []string{s.frozen, dottedNode} {
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

	s.endNode(t, s.frozen)
	if err := s.startNodes(t.Context(), t); err != nil {
		t.Fatal(err)
	}
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
	s.kubernetesNode(t, dottedNode)
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
