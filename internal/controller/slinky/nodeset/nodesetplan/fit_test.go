// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

func TestWhichKubernetesNodesFit(t *testing.T) {
	const node = `metadata: {name: n, labels: {gpu: a100, size: "8"}}`
	tests := []struct {
		name, spec, node string
		want             nodesetplan.Fit
	}{
		{"any node fits when the template asks for nothing", `{}`, ``, nodesetplan.Starts},
		{"a node with the labels of the selector fits", `{nodeSelector: {gpu: a100}}`, ``, nodesetplan.Starts},
		{"a node with other labels than those of the selector does not fit", `{nodeSelector: {gpu: h100}}`, ``, nodesetplan.Unfit},
		{"any term of the affinity is enough", affinity(`{matchExpressions: [{key: x, operator: Exists}]}, {matchExpressions: [{key: size, operator: Gt, values: ["7"]}]}`), ``, nodesetplan.Starts},
		{"all requirements of a term have to hold", affinity(`{matchExpressions: [{key: gpu, operator: In, values: [a100, h100]}, {key: size, operator: Lt, values: ["8"]}]}`), ``, nodesetplan.Unfit},
		{"a node is selected by its name", affinity(`{matchFields: [{key: metadata.name, operator: In, values: [n]}]}`), ``, nodesetplan.Starts},
		{"a node is not selected by another name", affinity(`{matchFields: [{key: metadata.name, operator: NotIn, values: [n]}]}`), ``, nodesetplan.Unfit},
		{"an empty term selects nothing", affinity(`{}`), ``, nodesetplan.Unfit},
		{"a requirement that makes no sense selects nothing", affinity(`{matchExpressions: [{key: gpu, operator: Around, values: [x]}]}`), ``, nodesetplan.Unfit},
		{"a taint NoSchedule keeps new workers away", `{}`, `{taints: [{key: t, effect: NoSchedule}]}`, nodesetplan.Stays},
		{"a taint NoExecute keeps all workers away", `{}`, `{taints: [{key: t, effect: NoExecute}]}`, nodesetplan.Unfit},
		{"a taint PreferNoSchedule keeps no worker away", `{}`, `{taints: [{key: t, effect: PreferNoSchedule}]}`, nodesetplan.Starts},
		{"a taint is tolerated by its value", `{tolerations: [{key: t, value: v}]}`, `{taints: [{key: t, value: v, effect: NoExecute}]}`, nodesetplan.Starts},
		{"a taint is not tolerated by another value", `{tolerations: [{key: t, value: w}]}`, `{taints: [{key: t, value: v, effect: NoExecute}]}`, nodesetplan.Unfit},
		{"a taint is not tolerated by another effect", `{tolerations: [{key: t, operator: Exists, effect: NoSchedule}]}`, `{taints: [{key: t, effect: NoExecute}]}`, nodesetplan.Unfit},
		{"a toleration without a key tolerates any taint", `{tolerations: [{operator: Exists}]}`, `{taints: [{key: t, value: v, effect: NoExecute}]}`, nodesetplan.Starts},
		{"a cordoned node fits and gets no new worker", `{}`, `{unschedulable: true, taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]}`, nodesetplan.Fits},
		{"a node that is not ready is waited for", `{}`, `{taints: [{key: node.kubernetes.io/not-ready, effect: NoSchedule}, {key: node.kubernetes.io/unreachable, effect: NoExecute}]}`, nodesetplan.Belongs},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := node
			if tt.node != "" {
				text += "\nspec: " + tt.node
			}
			got := nodesetplan.KubeNodes(manifest.Parse[corev1.PodSpec](t, tt.spec), []corev1.Node{*manifest.Parse[corev1.Node](t, text)})
			if len(got) != 1 || got[0].Fit != tt.want {
				t.Errorf("%+v, want %d", got, tt.want)
			}
		})
	}
}

func affinity(terms string) string {
	return `{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [` + terms + `]}}}}`
}

func TestHostNamesOfKubernetesNodes(t *testing.T) {
	nodes := []corev1.Node{
		*manifest.Parse[corev1.Node](t, `metadata: {name: b.rack1}`),
		*manifest.Parse[corev1.Node](t, `metadata: {name: a, annotations: {nodeset.slinky.slurm.net/hostname-override: gpu-7}}`),
		*manifest.Parse[corev1.Node](t, `metadata: {name: b.rack2}`),
		*manifest.Parse[corev1.Node](t, `metadata: {name: c, annotations: {nodeset.slinky.slurm.net/hostname-override: "gpu 7"}}`),
		*manifest.Parse[corev1.Node](t, `{metadata: {name: d, annotations: {nodeset.slinky.slurm.net/hostname-override: gpu-7}}, spec: {taints: [{key: t, effect: NoExecute}]}}`),
	}
	got := nodesetplan.KubeNodes(&corev1.PodSpec{}, nodes)
	problems := nodesetplan.NameHosts(got, nil)
	var names []string
	for _, n := range got {
		if n.Fit == nodesetplan.Starts {
			names = append(names, n.Name+"="+n.Hostname)
		}
	}
	if diff := cmp.Diff([]string{"a=gpu-7", "b.rack1=b"}, names); diff != "" {
		t.Error(diff)
	}
	message := problems.Message()
	for _, want := range []string{
		"Node b.rack2: host name b is that of the worker on Node b.rack1 already; set another one in its annotation nodeset.slinky.slurm.net/hostname-override",
		`Node c: host name "gpu 7" cannot be that of a worker: `,
	} {
		if !strings.Contains(message, want) {
			t.Errorf("%q is not in %q", want, message)
		}
	}
	if len(problems) != 2 {
		t.Errorf("%d problems: %s", len(problems), message)
	}
}

// Workers of scaling mode StatefulSet are not named after Kubernetes nodes.
func TestPinsDoNotDependOnTheHostNamesOfKubernetesNodes(t *testing.T) {
	nodes := nodesetplan.KubeNodes(&corev1.PodSpec{}, []corev1.Node{
		*manifest.Parse[corev1.Node](t, `metadata: {name: b.rack1}`),
		*manifest.Parse[corev1.Node](t, `metadata: {name: b.rack2}`),
		*manifest.Parse[corev1.Node](t, `metadata: {name: c, annotations: {nodeset.slinky.slurm.net/hostname-override: "gpu 7"}}`),
	})
	before := map[string]string{"0": "b.rack1", "1": "b.rack2", "2": "c"}
	if diff := cmp.Diff(map[int]string{0: "b.rack1", 1: "b.rack2", 2: "c"}, nodesetplan.Pin(before, nil, 3, nodes, false)); diff != "" {
		t.Error(diff)
	}
}
