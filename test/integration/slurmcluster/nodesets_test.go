// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

func TestNodeSetsJoinTheirCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.cluster("demo", nebiusv1.SlurmClusterSpec{PartitionConfiguration: nebiusv1.PartitionConfiguration{
		ConfigType: nebiusv1.PartitionConfigStructured,
		Partitions: []nebiusv1.Partition{{Name: "gpu", NodeSetRefs: []string{"gpu"}}},
	}})
	await(w, c, func(c *nebiusv1.SlurmCluster) error {
		return condition(c.Status.Conditions, "NodeSetRefsResolved", metav1.ConditionFalse, "NotResolved", "partition gpu: there is no NodeSet gpu of this cluster")
	})
	set := &nebiusv1alpha1.NodeSet{ObjectMeta: w.meta("gpu"), Spec: nebiusv1alpha1.NodeSetSpec{Replicas: new(int32(2))}}
	w.create(set)
	composed := &slinkyv1beta1.NodeSet{ObjectMeta: w.meta("demo-gpu")}
	w.exists(composed)
	await(w, c, func(c *nebiusv1.SlurmCluster) error {
		return condition(c.Status.Conditions, "NodeSetRefsResolved", metav1.ConditionTrue, "Resolved", "")
	})
	report(w, composed, true, func(n *slinkyv1beta1.NodeSet) {
		n.Status.Desired, n.Status.UpdatedReplicas, n.Status.ReadyReplicas, n.Status.Selector = 2, 2, 2, "a=b"
	})
	ready := func(s *nebiusv1alpha1.NodeSet) error {
		if s.Status.Phase != nebiusv1alpha1.NodeSetReady || s.Status.Replicas != 2 || s.Status.LabelSelector != "a=b" {
			return fmt.Errorf("status %+v", s.Status)
		}
		return errors.Join(
			condition(s.Status.Conditions, "Ready", metav1.ConditionTrue, "Available", ""),
			condition(s.Status.Conditions, "PodsReady", metav1.ConditionTrue, "NodeSetReady", ""),
			condition(s.Status.Conditions, "StatefulSetUpdated", metav1.ConditionTrue, "NodeSetReady", "2 of 2"),
			condition(s.Status.Conditions, "StatefulSetTerminated", metav1.ConditionFalse, "WorkersEnabled", ""))
	}
	await(w, c, func(c *nebiusv1.SlurmCluster) error {
		if n := c.Status.ReadyWorkers; n == nil || *n != 2 {
			return fmt.Errorf("the status is %+v", c.Status)
		}
		return nil
	})
	quiet(w, set, ready)

	// A typing error costs no worker.
	edit(w, set, func(s *nebiusv1alpha1.NodeSet) {
		s.Spec.NodeConfig.Static = "oops"
		s.Spec.Replicas = new(int32(1))
	})
	await(w, set, func(s *nebiusv1alpha1.NodeSet) error {
		return condition(s.Status.Conditions, "Stalled", metav1.ConditionTrue, "InvalidSpec", `spec.nodeConfig.static: "oops" is not Key=Value`)
	})
	await(w, c, func(c *nebiusv1.SlurmCluster) error {
		return errors.Join(
			condition(c.Status.Conditions, "WorkersAvailable", metav1.ConditionFalse, "NotAvailable", "NodeSet gpu: spec.nodeConfig.static"),
			condition(c.Status.Conditions, "Stalled", metav1.ConditionTrue, "InvalidSpec", "NodeSet gpu: spec.nodeConfig.static"))
	})
	w.exists(composed)
	if composed.Replicas() != 2 {
		t.Errorf("a NodeSet with a mistake was scaled to %d", composed.Replicas())
	}

	if err := w.user.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	w.gone(composed)
}

func TestANodeSetThatNamesNoClusterBelongsToTheOldest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	set := &nebiusv1alpha1.NodeSet{ObjectMeta: w.meta("a")}
	w.create(set)
	await(w, set, func(s *nebiusv1alpha1.NodeSet) error {
		return condition(s.Status.Conditions, "Ready", metav1.ConditionFalse, "ReferenceNotFound", "spec.clusterName: must name a SlurmCluster")
	})
	first := w.cluster("b-first", nebiusv1.SlurmClusterSpec{})
	w.exists(&slinkyv1beta1.NodeSet{ObjectMeta: w.meta("b-first-a")})
	// Creation times have whole seconds; a cluster of the same second would win by its name.
	apiserver.Eventually(t, func() error {
		if time.Since(first.CreationTimestamp.Time) <= time.Second {
			return errors.New("still the same second")
		}
		return nil
	})
	w.cluster("a-second", nebiusv1.SlurmClusterSpec{})
	w.exists(&slinkyv1beta1.Controller{ObjectMeta: w.meta("a-second")})
	w.gone(&slinkyv1beta1.NodeSet{ObjectMeta: w.meta("a-second-a")})
	w.exists(&slinkyv1beta1.NodeSet{ObjectMeta: w.meta("b-first-a")})
	if err := w.user.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	w.exists(&slinkyv1beta1.NodeSet{ObjectMeta: w.meta("a-second-a")})
}
