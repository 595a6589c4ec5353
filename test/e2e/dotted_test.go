// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/test/walk"
)

// staysOnDottedNode has a worker that registers by the whole name of its Kubernetes node. Neither the operator nor one that has
// just started takes it for one that has not registered.
func staysOnDottedNode(t *testing.T, s *nodesScene, alice *user) {
	// The worker has the Kubernetes node for itself, as all of the others.
	s.scaleNodeSet(t, 0)
	for _, name := range []string{"cpu-0", "cpu-1"} {
		s.awaitNoPod(t, name)
	}
	m := s.manifest(t, "dotted.yaml", "DOTTED", dottedNode)
	s.apply(t, m)
	s.awaitReady(t, m)
	worker := s.workerOn(t, dottedNode)
	before := s.pod(t, worker).UID
	alice.seesNode(t, dottedNode, "idle")
	alice.runsOn(t, dottedNode)

	s.restartsOperator(t)
	// That this arrives in Slurm shows that the new operator has looked at the worker.
	s.changeNode(t, dottedNode, func(node *corev1.Node) func(*corev1.Node) {
		was := node.Annotations[slinkyv1beta1.AnnotationFeatures]
		node.Annotations[slinkyv1beta1.AnnotationFeatures] = was + ", restarted"
		return func(node *corev1.Node) { node.Annotations[slinkyv1beta1.AnnotationFeatures] = was }
	})
	alice.seesShown(t, dottedNode, "k8s/restarted")
	alice.seesNode(t, dottedNode, "idle")
	alice.runsOn(t, dottedNode)
	p := s.pod(t, worker)
	if p.UID != before || p.DeletionTimestamp != nil {
		t.Error("the worker was repaired, which was well")
	}
	for _, c := range p.Status.Conditions {
		if c.Type == slinkyv1beta1.PodConditionNeedsAttention {
			t.Errorf("the worker needs attention: %s: %s", c.Reason, c.Message)
		}
	}
	s.sound(t)
}

// runsOn runs a step on a node, which gets the name of the node.
func (u *user) runsOn(t *testing.T, node string) {
	t.Helper()
	if got := u.runs(t, "srun --partition=dotted --nodelist="+node+" printenv SLURMD_NODENAME"); got != node {
		t.Errorf("the step on %s ran on %s", node, got)
	}
}

// restartsOperator deletes the pods of the operator and waits until others are ready.
func (s *scene) restartsOperator(t *testing.T) {
	t.Helper()
	of := []client.ListOption{client.InNamespace(walk.Operator.Namespace), client.MatchingLabels{"coxswain.dev/slurmrestd-client": "true"}}
	var old corev1.PodList
	if err := s.List(t.Context(), &old, of...); err != nil {
		t.Fatal(err)
	}
	if len(old.Items) == 0 {
		t.Fatal("the operator has no pods")
	}
	for i := range old.Items {
		if err := s.Delete(t.Context(), &old.Items[i]); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, patient, "another operator to be ready", func(ctx context.Context) error {
		var now corev1.PodList
		if err := s.List(ctx, &now, of...); err != nil {
			return err
		}
		ready := 0
		for i := range now.Items {
			for _, p := range old.Items {
				if p.UID == now.Items[i].UID {
					return fmt.Errorf("%s is still there", p.Name)
				}
			}
			if walk.IsReady(&now.Items[i]) {
				ready++
			}
		}
		if ready < len(old.Items) {
			return errors.New("not all pods are ready")
		}
		return nil
	})
}
