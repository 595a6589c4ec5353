// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// drainsForMaintenance announces on a Kubernetes node that its machine is to be replaced, while a job runs there, and takes that back.
func drainsForMaintenance(t *testing.T, s *nodesScene, alice *user) {
	worker := s.workerOn(t, s.frozen)
	before := s.pod(t, worker).UID
	job, end := alice.submitsBlocked(t, "--nodelist="+worker)
	t.Cleanup(func() { _ = s.announce(context.WithoutCancel(t.Context()), s.frozen, corev1.ConditionFalse) })
	if err := s.announce(t.Context(), s.frozen, corev1.ConditionTrue); err != nil {
		t.Fatal(err)
	}
	alice.seesShown(t, worker, "Reason=[compute_maintenance] node replacement process: NebiusMaintenanceScheduled")
	alice.seesNode(t, worker, "draining")
	s.saysOutOfService(t, worker, slinkyv1beta1.ReasonMaintenance)
	alice.awaits(t, job, "RUNNING")
	end(t)
	alice.awaits(t, job, "COMPLETED")
	alice.seesNode(t, worker, "drained")
	if err := s.announce(t.Context(), s.frozen, corev1.ConditionFalse); err != nil {
		t.Fatal(err)
	}
	alice.seesNode(t, worker, "idle")
	s.saysOutOfService(t, worker, "")
	if p := s.pod(t, worker); p.UID != before {
		t.Error("the worker was made anew")
	}
}

// announce sets on a Kubernetes node, as a cloud does, whether its machine is to be replaced.
func (s *scene) announce(ctx context.Context, node string, status corev1.ConditionStatus) error {
	return s.setNodeCondition(ctx, node, corev1.NodeCondition{Type: "NebiusMaintenanceScheduled", Status: status, Reason: "Scheduled", Message: "on Friday"})
}

// setNodeCondition sets a condition of a Kubernetes node.
func (s *scene) setNodeCondition(ctx context.Context, node string, c corev1.NodeCondition) error {
	n := &corev1.Node{}
	n.Name = node
	patch := fmt.Appendf(nil, `{"status": {"conditions": [{"type": %q, "status": %q, "reason": %q, "message": %q}]}}`, c.Type, c.Status, c.Reason, c.Message)
	if err := s.Status().Patch(ctx, n, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
		return fmt.Errorf("setting condition %s of Node %s: %w", c.Type, node, err)
	}
	return nil
}

// saysOutOfService waits until a worker and its NodeSet show why the Slurm node gets no new jobs; without a reason it gets some.
func (s *scene) saysOutOfService(t *testing.T, worker, reason string) {
	t.Helper()
	eventually(t, soon, worker+" to be out of service by "+reason, func(ctx context.Context) error {
		said, p := "", s.pod(t, worker)
		for _, c := range p.Status.Conditions {
			if c.Type == slinkyv1beta1.PodConditionOutOfService && c.Status == corev1.ConditionTrue {
				said = c.Reason
			}
		}
		var set slinkyv1beta1.NodeSet
		name := worker[:strings.LastIndex(worker, "-")]
		if err := s.Get(ctx, s.name(name), &set); err != nil {
			return fmt.Errorf("reading NodeSet %s: %w", name, err)
		}
		grouped := ""
		for _, g := range set.Status.OutOfService {
			if strings.Contains(g.Nodes, cmp.Or(p.Spec.Hostname, p.Name)) {
				grouped = g.Reason
			}
		}
		if said != reason || grouped != reason {
			return fmt.Errorf("the pod says %q, the NodeSet %+v", said, set.Status.OutOfService)
		}
		return nil
	})
}
