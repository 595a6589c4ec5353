// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestAnAnnotationOfTheKubernetesNodeCannotBeRead(t *testing.T) {
	t.Parallel()
	o, nodes := operator.StartWorkersOn(t, 1, `partition: {enabled: true}`)
	annotate := func(key, value string) {
		o.ChangeKubeNode(nodes[0], func(n *corev1.Node) { n.Annotations = map[string]string{key: value} })
	}
	annotate(slinkyv1beta1.AnnotationTopologySpec, "rack 7")
	expectAttention(t, o, "w-0", slinkyv1beta1.ReasonInvalidTopology, "of Kubernetes node "+nodes[0])
	annotate(slinkyv1beta1.AnnotationFeatures, "a&b")
	expectAttention(t, o, "w-0", slinkyv1beta1.ReasonInvalidFeatures, "of Kubernetes node "+nodes[0])
	annotate(slinkyv1beta1.AnnotationFeatures, "a100")
	expectAttention(t, o, "w-0", "", "")
	expectRecord(t, o, "w-0", nodes[0], "", "k8s/a100")
}

func TestTheAnnotationOfTheKubernetesNodeIsTakenAway(t *testing.T) {
	t.Parallel()
	o, nodes := operator.StartWorkersOn(t, 1, `partition: {enabled: true}`)
	o.ChangeKubeNode(nodes[0], func(n *corev1.Node) {
		n.Annotations = map[string]string{slinkyv1beta1.AnnotationTopologySpec: "default:leaf1", slinkyv1beta1.AnnotationFeatures: "a100"}
	})
	expectRecord(t, o, "w-0", nodes[0], "default:leaf1", "k8s/a100")
	o.ChangeKubeNode(nodes[0], func(n *corev1.Node) { n.Annotations = nil })
	apiserver.Eventually(t, func() error {
		status, _ := o.Slurm.Node("w-0")
		if says := operator.Get[corev1.Pod](o, "w-0").Annotations[slinkyv1beta1.AnnotationTopologySpec]; status.Topology != "" || says != "" {
			return fmt.Errorf("the topology is %q, and the pod says %q", status.Topology, says)
		}
		if slices.Contains(status.Features, "k8s/a100") || slices.Contains(status.ActiveFeatures, "k8s/a100") {
			return fmt.Errorf("the features are %v, active %v", status.Features, status.ActiveFeatures)
		}
		return nil
	})
	o.ExpectNothingWritten(o.Restart)
}

func TestSlurmRefusesTheRecordOfANode(t *testing.T) {
	t.Parallel()
	o, nodes := operator.StartWorkersOn(t, 1, `partition: {enabled: true}`)
	o.Slurm.SetFault(func(r *http.Request) *fake.Fault {
		if r.Method == http.MethodPost {
			return &fake.Fault{Error: &fake.Error{Number: 2180, Text: "Invalid topology"}}
		}
		return nil
	})
	o.ChangeKubeNode(nodes[0], func(n *corev1.Node) {
		n.Annotations = map[string]string{slinkyv1beta1.AnnotationTopologySpec: "default:leaf1"}
	})
	expectAttention(t, o, "w-0", slinkyv1beta1.ReasonRecordRefused, "Invalid topology")
	o.ExpectNothingWritten(func() {})
}

// expectRecord waits until Slurm has on a node what follows from its pod and its Kubernetes node.
func expectRecord(t *testing.T, o *operator.Operator, name, kubeNode, topology, feature string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		status, _ := o.Slurm.Node(name)
		comment, _ := node.ParseComment(status.Comment)
		want := node.Comment{
			Namespace: o.Namespace, PodName: name, Node: kubeNode, NodeSetName: "w",
			NodeSetUID:   string(operator.Get[slinkyv1beta1.NodeSet](o, "w").UID),
			Registration: slurmd.Registration(operator.Get[corev1.Pod](o, name)),
		}
		switch {
		case comment != want:
			return fmt.Errorf("the comment is %q", status.Comment)
		case status.Topology != topology:
			return fmt.Errorf("the topology is %q", status.Topology)
		case !slices.Contains(status.Features, feature) || !slices.Contains(status.ActiveFeatures, feature):
			return fmt.Errorf("the features are %v, active %v", status.Features, status.ActiveFeatures)
		case topology != "" && operator.Get[corev1.Pod](o, name).Annotations[slinkyv1beta1.AnnotationTopologySpec] != topology:
			return fmt.Errorf("the pod says %v", operator.Get[corev1.Pod](o, name).Annotations)
		}
		return nil
	})
}
