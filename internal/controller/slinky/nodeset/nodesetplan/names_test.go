// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

func TestTheNamesOfWorkersInSlurm(t *testing.T) {
	node := func(name string, labels map[string]string, cordoned bool) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: corev1.NodeSpec{Unschedulable: cordoned}}
	}
	gpu := map[string]string{"gpu": "yes"}
	nodes := []corev1.Node{node("c.example.org", gpu, false), node("a", gpu, true), node("b", nil, false)}
	nodes[1].Annotations = map[string]string{slinkyv1beta1.AnnotationHostnameOverride: "gpu-7"}
	tests := []struct {
		name, spec string
		template   corev1.PodSpec
		want       []string
	}{
		{"the names in Slurm are those of the pods", `{replicas: 2}`, corev1.PodSpec{}, []string{"w-0", "w-1"}},
		{"the names in Slurm begin with what the template says", `{replicas: 2, template: {spec: {hostname: gpu-1}}}`, corev1.PodSpec{}, []string{"gpu-10", "gpu-11"}},
		{"the names in Slurm have as many digits as they are to have", `{replicas: 2, ordinalPadding: 3, template: {spec: {hostname: gpu-}}}`, corev1.PodSpec{}, []string{"gpu-000", "gpu-001"}},
		{"without workers there is no name", `{replicas: 0}`, corev1.PodSpec{}, nil},
		{"on the host network the scheduler decides", `{replicas: 2}`, corev1.PodSpec{HostNetwork: true}, nil},
		{"workers of Kubernetes nodes are called after them, cordoned or not", `{scalingMode: DaemonSet}`, corev1.PodSpec{NodeSelector: gpu}, []string{"gpu-7", "c"}},
		{"workers of Kubernetes nodes on the host network are called with all that is in the names of these", `{scalingMode: DaemonSet}`, corev1.PodSpec{NodeSelector: gpu, HostNetwork: true}, []string{"a", "c.example.org"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set := manifest.Parse[slinkyv1beta1.NodeSet](t, `{metadata: {name: w}, spec: `+tt.spec+`}`)
			if diff := cmp.Diff(tt.want, nodesetplan.WorkerNames(set, &tt.template, nodes)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNumbersWithoutEndAreNotCounted(t *testing.T) {
	set := manifest.Parse[slinkyv1beta1.NodeSet](t, `{metadata: {name: w}, spec: {replicas: 2000000000}}`)
	if n := len(nodesetplan.WorkerNames(set, &corev1.PodSpec{}, nil)); n != 65536 {
		t.Errorf("there are %d names", n)
	}
}

func TestTheFirstNameThatTwoNodeSetsShare(t *testing.T) {
	for _, tt := range []struct {
		name, want    string
		names, others []string
	}{
		{"is none where all differ", "", []string{"gpu-0", "gpu-1"}, []string{"gpu-10", "gpu-11"}},
		{"is the first in the order of the one that is looked at", "gpu-10", []string{"gpu-9", "gpu-10", "gpu-11"}, []string{"gpu-11", "gpu-10"}},
	} {
		if got := nodesetplan.SharedName(tt.names, tt.others); got != tt.want {
			t.Errorf("it %s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
