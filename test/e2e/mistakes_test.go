// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/coxswain-hpc/coxswain/test/walk"
)

// What a user writes wrongly is refused by the API server alone, or leads to a condition; either names the field. Here no
// webhook helps; TestWebhook is about what that refuses in addition.
func TestMistakes(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.ignoreWebhooks(t)
	for i, mistake := range []struct {
		name string
		// object is of kind SlurmCluster unless it names its kind.
		object string
		// field is what the refusal or the condition names.
		field string
		// condition is the condition with the mistake, and status its status; without it the API server has to refuse.
		condition string
		status    metav1.ConditionStatus
	}{
		{
			name:   "an unknown node filter is refused",
			object: `spec: {k8sNodeFilters: [{name: gpu}], slurmNodes: {worker: {size: 1, k8sNodeFilterName: cpu}}}`,
			field:  "spec.slurmNodes.worker.k8sNodeFilterName",
		},
		{
			name:   "a partition line that is none is refused",
			object: `spec: {partitionConfiguration: {configType: custom, rawConfig: ["NodeName=evil"]}}`,
			field:  "spec.partitionConfiguration.rawConfig",
		},
		{
			name:      "a partition line with an unknown option is told by a condition",
			object:    `spec: {partitionConfiguration: {configType: custom, rawConfig: ["PartitionName=main Nodes=ALL Stat=UP"]}}`,
			field:     "spec.partitionConfiguration.rawConfig",
			condition: "Stalled", status: metav1.ConditionTrue,
		},
		{
			name:   "a second line in a partition line is refused",
			object: `spec: {partitionConfiguration: {configType: custom, rawConfig: ["PartitionName=main Nodes=ALL\nSlurmUser=root"]}}`,
			field:  "spec.partitionConfiguration.rawConfig[0]",
		},
		{
			name:   "accounting without a database is refused",
			object: `spec: {slurmNodes: {accounting: {enabled: true}}}`,
			field:  "spec.slurmNodes.accounting",
		},
		{
			name:   "a line break in the name of a user is refused",
			object: `spec: {slurmNodes: {login: {users: [{name: "alice\nroot", uid: 2000}]}}}`,
			field:  "spec.slurmNodes.login.users[0].name",
		},
		{
			name:   "a line break in the name of a partition is refused",
			object: `spec: {partitionConfiguration: {configType: structured, partitions: [{name: "main\nSlurmUser=root", isAll: true}]}}`,
			field:  "spec.partitionConfiguration.partitions[0].name",
		},
		{
			name:      "a key of slurm.conf that is the operator's is told by a condition",
			object:    `spec: {customSlurmConfig: "SlurmUser=root"}`,
			field:     "spec.customSlurmConfig",
			condition: "Stalled", status: metav1.ConditionTrue,
		},
		{
			name:      "a line of customSlurmConfig that is no setting is told by a condition",
			object:    `spec: {customSlurmConfig: "no setting at all"}`,
			field:     "spec.customSlurmConfig",
			condition: "Stalled", status: metav1.ConditionTrue,
		},
		{
			name:      "a partition of a NodeSet that does not exist is told by a condition",
			object:    `spec: {partitionConfiguration: {configType: structured, partitions: [{name: main, nodeSetRefs: [nobody]}]}}`,
			field:     "nobody",
			condition: "NodeSetRefsResolved", status: metav1.ConditionFalse,
		},
		{
			name:      "a field without effect in this version is told by a condition",
			object:    `spec: {useDefaultAppArmorProfile: true}`,
			field:     "spec.useDefaultAppArmorProfile",
			condition: "SpecEffective", status: metav1.ConditionFalse,
		},
		{
			name:      "a key of slurm.conf that is the operator's is told by a condition of a Controller",
			object:    `{apiVersion: slinky.slurm.net/v1beta1, kind: Controller, spec: {extraConf: "ClusterName=evil"}}`,
			field:     "spec.extraConf",
			condition: "Stalled", status: metav1.ConditionTrue,
		},
		{
			name:   "a quote in the node parameters of a NodeSet is refused",
			object: `{apiVersion: slinky.slurm.net/v1beta1, kind: NodeSet, spec: {controllerRef: {name: a}, extraConf: "Weight='1"}}`,
			field:  "spec.extraConf",
		},
		{
			name:   "an Accounting without a database is refused",
			object: `{apiVersion: slinky.slurm.net/v1beta1, kind: Accounting, spec: {}}`,
			field:  "embeddedDatabase",
		},
		{
			name:      "a LoginSet of a Controller that does not exist is told by a condition",
			object:    `{apiVersion: slinky.slurm.net/v1beta1, kind: LoginSet, spec: {controllerRef: {name: nobody}}}`,
			field:     "spec.controllerRef",
			condition: "Ready", status: metav1.ConditionFalse,
		},
		{
			name:   "a misspelt field is refused",
			object: `spec: {slurmNodes: {worker: {sise: 1}}}`,
			field:  ".spec.slurmNodes.worker.sise",
		},
		{
			name:      "a misspelt field of a container is told by a condition",
			object:    `{apiVersion: slinky.slurm.net/v1beta1, kind: Controller, spec: {slurmctld: {imagePolicy: Always}}}`,
			field:     "spec.slurmctld",
			condition: "Stalled", status: metav1.ConditionTrue,
		},
	} {
		t.Run(mistake.name, func(t *testing.T) {
			o := mistaken(t, mistake.object)
			o.SetNamespace(s.namespace)
			// A name of its own: what the one before was composed to is still going.
			o.SetName(fmt.Sprintf("mistake-%d", i))
			err := s.ApplyManifest(t.Context(), walk.Manifest{o})
			if mistake.condition == "" {
				if err == nil || !strings.Contains(err.Error(), mistake.field) {
					t.Fatalf("the API server does not refuse it with a message that names %s: %v", mistake.field, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			c := s.awaitCondition(t, soon, o, mistake.condition, mistake.status)
			if !strings.Contains(c.Message, mistake.field) {
				t.Errorf("condition %s does not name %s: %s", c.Type, mistake.field, c.Message)
			}
			if err := s.Delete(t.Context(), o); err != nil {
				t.Error(err)
			}
		})
	}
}

// mistaken parses an object, a SlurmCluster unless it names its kind.
func mistaken(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	m, err := walk.ParseManifest([]byte(text))
	if err != nil || len(m) != 1 {
		t.Fatalf("parsing %q: %v", text, err)
	}
	if m[0].GetKind() == "" {
		m[0].SetAPIVersion("slurm.nebius.ai/v1")
		m[0].SetKind("SlurmCluster")
	}
	return m[0]
}
