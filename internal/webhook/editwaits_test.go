// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
	"github.com/coxswain-hpc/coxswain/internal/slurm/need"
)

// edit changes an object with dry-run, and returns the warnings about jobs.
func (s *scene) edit(kind, name string, change func(u *unstructured.Unstructured)) []string {
	s.t.Helper()
	u := s.object(kind, `{metadata: {name: `+name+`}}`)
	must(s.t, s.user.Get(s.t.Context(), client.ObjectKeyFromObject(u), u))
	change(u)
	s.warnings.take()
	must(s.t, s.user.Update(s.t.Context(), u, client.DryRunAll))
	var out []string
	for _, warning := range s.warnings.take() {
		if strings.Contains(warning, "jobs") {
			out = append(out, warning)
		}
	}
	return out
}

// sets changes a field.
func sets(value any, path ...string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
			panic(err)
		}
	}
}

// annotates sets the annotation that has jobs end.
func annotates(digest string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{slinkyv1beta1.AnnotationEndJobs: digest})
	}
}

func TestWhoTakesAPartitionAwayIsTold(t *testing.T) {
	t.Parallel()
	s := start(t)
	const partitions = "PartitionName=old Nodes=ALL\nPartitionName=new Nodes=ALL\n"
	s.create(
		s.object("Controller", `{metadata: {name: demo}, spec: {extraConf: "`+strings.ReplaceAll(partitions, "\n", `\n`)+`"}}`),
		s.object("NodeSet", `{metadata: {name: gpu}, spec: {controllerRef: {name: demo}, partition: {enabled: true}}}`),
		s.object("SlurmCluster", minimalCluster),
	)
	c := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "demo"}}
	config := &corev1.ConfigMap{Data: map[string]string{"slurm.conf": "ClusterName=demo\nNodeSet=gpu Feature=gpu\nPartitionName=gone Nodes=ALL State=DRAIN\nPartitionName=gpu Nodes=gpu\n" + partitions}}
	config.Name = c.ConfigName()
	s.create(config)
	ofCluster := config.DeepCopy()
	ofCluster.ResourceVersion, ofCluster.UID = "", ""
	ofCluster.Name = (&slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "alpha"}}).ConfigName()
	ofCluster.Data = map[string]string{"slurm.conf": "PartitionName=main Nodes=ALL\n"}
	s.create(ofCluster)
	must(t, s.user.Get(t.Context(), client.ObjectKeyFromObject(c), c))
	waits := slurmctld.EditWaits{Partitions: []string{"gone"}, Digest: "abc"}
	c.Status.Conditions = []metav1.Condition{{
		Type: slinkyv1beta1.ConditionEditWaits, Status: metav1.ConditionTrue, Reason: "x", LastTransitionTime: metav1.Now(),
		Message: waits.Message(need.Answer{Of: map[string]need.Jobs{"gone": {Running: 3, Last: "12"}}}),
	}}
	must(t, s.user.Status().Update(t.Context(), c))

	keeps := func(name string) string { return (slurmctld.EditWaits{Partitions: []string{name}}).Kept() + "; " }
	const unknown = "condition EditWaits of the Controller then shows how many jobs need them"
	tests := []struct {
		name, kind, object string
		change             func(*unstructured.Unstructured)
		want               string // at the end
	}{
		{"an edit that takes no partition away says nothing", "Controller", "demo", sets(partitions+"KillWait=31\n", "spec", "extraConf"), ""},
		{"a partition that goes is named, and not one that lingers already", "Controller", "demo", sets("PartitionName=new Nodes=ALL\n", "spec", "extraConf"),
			keeps("old") + unknown},
		{"the partition of a NodeSet goes", "NodeSet", "gpu", sets(false, "spec", "partition", "enabled"),
			keeps("gpu") + unknown},
		{"a NodeSet that keeps its partition says nothing", "NodeSet", "gpu", sets(int64(3), "spec", "replicas"), ""},
		{"a SlurmCluster gets other partitions", "SlurmCluster", "alpha", sets(map[string]any{"configType": "custom", "rawConfig": []any{"PartitionName=other Nodes=ALL Default=YES"}}, "spec", "partitionConfiguration"),
			keeps("main") + unknown},
		{"the annotation for the edit that waits tells which jobs it ends", "Controller", "demo", annotates("abc"),
			"jobs of gone: 3 running (job 12 has no time limit)"},
		{"the annotation for another edit does not tell which jobs it ends", "Controller", "demo", annotates("abcd"), "it is not known how many these are"},
		{"the annotation on a SlurmCluster without a Controller yet", "SlurmCluster", "alpha", annotates("abc"), "it is not known how many these are"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Join(s.edit(tt.kind, tt.object, tt.change), "\n")
			if !strings.HasSuffix(got, tt.want) || (got == "") != (tt.want == "") {
				t.Errorf("it warns\n%s, want\n%s", got, tt.want)
			}
		})
	}
}
