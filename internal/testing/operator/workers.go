// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// StartWorkers starts a cluster without accounting and login nodes, with as many running workers, w-0 and so on.
func StartWorkers(t testing.TB, replicas int, spec string) *Operator {
	t.Helper()
	o := createWorkers(t, replicas, spec)
	o.RunWorkers()
	ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return int(s.SlurmIdle) == replicas })
	return o
}

// StartWorkersOn is StartWorkers with one Kubernetes node for each, whose names it returns.
func StartWorkersOn(t testing.TB, replicas int, spec string) (*Operator, []string) {
	t.Helper()
	o := createWorkers(t, replicas, spec)
	var nodes []string
	for i, name := range WorkerNames(replicas) {
		nodes = append(nodes, o.KubeNode(fmt.Sprintf("node-%d", i)))
		o.Bind(name, nodes[i])
	}
	o.RunWorkers()
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return int(s.SlurmIdle) == replicas })
	return o, nodes
}

// StartWorkersOnOne is StartWorkers with one Kubernetes node for all, whose name it returns.
func StartWorkersOnOne(t testing.TB, replicas int, spec string) (*Operator, string) {
	t.Helper()
	o := createWorkers(t, replicas, spec)
	node := o.KubeNode("node")
	for _, name := range WorkerNames(replicas) {
		o.Bind(name, node)
	}
	o.RunWorkers()
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return int(s.SlurmIdle) == replicas })
	return o, node
}

// createWorkers makes a NodeSet w with as many workers, which do not run yet, and its Controller and RestApi.
func createWorkers(t testing.TB, replicas int, spec string) *Operator {
	t.Helper()
	o := Start(t)
	Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {}}`)
	Create[slinkyv1beta1.RestApi](o, ARestAPI)
	Create[slinkyv1beta1.NodeSet](o, fmt.Sprintf(`{metadata: {name: w}, spec: {controllerRef: {name: demo}, replicas: %d, %s}}`, replicas, spec))
	o.ExpectWorkers(WorkerNames(replicas)...)
	return o
}

// WorkerNames returns the names of the workers of StartWorkers.
func WorkerNames(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("w-%d", i))
	}
	slices.Sort(out) // as the API server lists them
	return out
}

// Scale changes the number of workers of StartWorkers.
func (o *Operator) Scale(replicas int32) {
	o.t.Helper()
	Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.Replicas = &replicas })
}

// NodeState returns what slurmctld has on a node: its state and its reason.
func (o *Operator) NodeState(name string) string {
	o.t.Helper()
	n, _ := o.Slurm.Node(name)
	return strings.Join(n.State, "+") + " " + n.Reason
}
