// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/topology"
)

// labelled creates a Kubernetes node behind a switch.
func (w *world) labelled(name, leaf string) *corev1.Node {
	w.t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"network.example.com/tier-1": leaf}}}
	w.create(n)
	return n
}

// workerOn plays the controller of a NodeSet: it makes a worker on a Kubernetes node.
func (w *world) workerOn(set *slinkyv1beta1.NodeSet, name, node string) *corev1.Pod {
	w.t.Helper()
	p := &corev1.Pod{ObjectMeta: w.meta(set.Name + name), Spec: corev1.PodSpec{
		Hostname: name, NodeName: node, Containers: []corev1.Container{{Name: "slurmd", Image: "none"}},
	}}
	p.Labels = map[string]string{slinkyv1beta1.LabelCluster: "demo"}
	p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, slinkyv1beta1.GroupVersion.WithKind("NodeSet"))}
	w.create(p)
	return p
}

func TestTheTopologyFollowsLabelsOfKubernetesNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spec := demoSpec()
	spec.SlurmConfig.TopologyPlugin = new("topology/tree")
	spec.SlurmNodes.Worker.Size = 3
	c := w.cluster("demo", spec)
	set := &slinkyv1beta1.NodeSet{ObjectMeta: w.meta("demo-worker")}
	files := &corev1.ConfigMap{ObjectMeta: w.meta("demo-slurm-configs")}
	w.exists(set, files)
	if got := files.Data["topology.conf"]; !strings.HasSuffix(got, "\n"+topology.NoTree) {
		t.Errorf("there is a topology of nothing known: %s", got)
	}

	first := w.labelled(w.server.Namespace+"-a", "leaf1")
	w.labelled(w.server.Namespace+"-b", "leaf2")
	w.workerOn(set, "worker-0", w.server.Namespace+"-a")
	pod := w.workerOn(set, "worker-1", w.server.Namespace+"-b")
	is := func(comment, tree string) {
		t.Helper()
		await(w, files, func(m *corev1.ConfigMap) error {
			if got := m.Data["topology.conf"]; !strings.HasPrefix(got, comment) || !strings.HasSuffix(got, "\n"+tree) {
				return fmt.Errorf("topology.conf is\n%s", got)
			}
			return nil
		})
	}
	const above = "SwitchName=root Switches=leaf[1-2],root.unknown\nSwitchName=root.unknown Nodes=worker-2\n"
	is("# 0 nodes registered", "SwitchName=leaf1 Nodes=worker-0\nSwitchName=leaf2 Nodes=worker-1\n"+above)

	pod.Status.Conditions = []corev1.PodCondition{{Type: slinkyv1beta1.PodConditionRegistered, Status: corev1.ConditionTrue}}
	if err := w.user.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	is("# 1 nodes registered", "SwitchName=leaf1 Nodes=worker-0\nSwitchName=leaf2 Nodes=worker-1\n"+above)

	edit(w, first, func(n *corev1.Node) { n.Labels["network.example.com/tier-1"] = "leaf2" })
	is("# 1 nodes registered", "SwitchName=leaf2 Nodes=worker-[0-1]\nSwitchName=root Switches=leaf2,root.unknown\nSwitchName=root.unknown Nodes=worker-2\n")
	edit(w, first, func(n *corev1.Node) { delete(n.Labels, "network.example.com/tier-1") })
	is("# 1 nodes registered", "SwitchName=leaf2 Nodes=worker-1\nSwitchName=root Switches=leaf2,root.unknown\nSwitchName=root.unknown Nodes=worker-[0,2]\n")
	quiet(w, c, func(*nebiusv1.SlurmCluster) error { return nil })
}
