// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

func TestWorkersOfOneKubernetesNodeHaveOneNameInSlurm(t *testing.T) {
	t.Parallel()
	s := start(t)
	node := &corev1.Node{}
	node.Name, node.Labels = s.Namespace+"-n.example.org", map[string]string{"of": s.Namespace}
	must(t, s.user.Create(t.Context(), node))
	t.Cleanup(func() { _ = s.user.Delete(context.Background(), node) })
	daemons := `, scalingMode: DaemonSet, template: {spec: {nodeSelector: {of: ` + s.Namespace + `}}}`
	s.create(s.object("NodeSet", `{metadata: {name: first}, spec: {controllerRef: {name: a}`+daemons+`}}`))
	_, err := s.try("NodeSet", `{spec: {controllerRef: {name: a}`+daemons+`}}`)
	if want := "a worker of NodeSet first has host name " + s.Namespace + "-n as well, and in Slurm both would be the same node; keep the NodeSets on different Kubernetes nodes"; !strings.Contains(refusal(err), want) {
		t.Errorf("another one for each Kubernetes node: %v, want %q", err, want)
	}
	for name, spec := range map[string]string{
		"of another Controller":         `controllerRef: {name: b}` + daemons,
		"on other Kubernetes nodes":     `controllerRef: {name: a}, scalingMode: DaemonSet, template: {spec: {nodeSelector: {of: nobody}}}`,
		"that is called after ordinals": `controllerRef: {name: a}`,
	} {
		if _, err := s.try("NodeSet", `{spec: {`+spec+`}}`); err != nil {
			t.Errorf("one %s: %v", name, err)
		}
	}
}

func TestNamesThatNodeSetsShareAlreadyDoNotLockThemUp(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.stop()
	s.create(
		s.object("NodeSet", `{metadata: {name: v}, spec: {controllerRef: {name: a}, replicas: 2, template: {spec: {hostname: gpu-}}}}`),
		s.object("NodeSet", `{metadata: {name: w}, spec: {controllerRef: {name: a}, replicas: 2, template: {spec: {hostname: gpu-}}}}`),
	)
	s = s.again()
	s.create(s.object("NodeSet", `{metadata: {name: x}, spec: {controllerRef: {name: a}, replicas: 1, template: {spec: {hostname: cpu-}}}}`))
	change := func(name string, edit func(set *slinkyv1beta1.NodeSet)) error {
		set := &slinkyv1beta1.NodeSet{}
		must(t, s.user.Get(t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: name}, set))
		edit(set)
		return s.user.Update(t.Context(), set)
	}
	for what, edit := range map[string]func(set *slinkyv1beta1.NodeSet){
		"another field": func(set *slinkyv1beta1.NodeSet) { set.Spec.ExtraConf = "Weight=2" },
		"more workers":  func(set *slinkyv1beta1.NodeSet) { set.Spec.Replicas = new(int32(3)) },
		"fewer workers": func(set *slinkyv1beta1.NodeSet) { set.Spec.Replicas = new(int32(1)) },
	} {
		if err := change("w", edit); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	err := change("x", func(set *slinkyv1beta1.NodeSet) { set.Spec.Template.Spec.Raw = []byte(`{"hostname": "gpu-"}`) })
	if got := refusal(err); !strings.Contains(got, "NodeSet v") || !strings.Contains(got, "NodeSet w") {
		t.Errorf("names of two others are taken: %v", err)
	}
	if err := change("w", func(set *slinkyv1beta1.NodeSet) { set.Spec.Template.Spec.Raw = []byte(`{"hostname": "cpu-"}`) }); !strings.Contains(refusal(err), "NodeSet x") {
		t.Errorf("one mistake is exchanged for another: %v", err)
	}
}
