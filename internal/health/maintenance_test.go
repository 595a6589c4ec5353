// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

func watched() health.Conditions {
	return health.Conditions{
		Types: []string{health.DefaultMaintenanceType, health.HardwareIssuesSuspected}, IgnoredLabels: map[string]string{"pool": "spare", "keep": ""},
	}
}

func condition(kind string, status corev1.ConditionStatus) corev1.NodeCondition {
	return corev1.NodeCondition{Type: corev1.NodeConditionType(kind), Status: status, Reason: "R", Message: "m"}
}

func kubernetesNode(labels map[string]string, conditions ...corev1.NodeCondition) *corev1.Node {
	n := &corev1.Node{}
	n.Labels, n.Status.Conditions = labels, conditions
	return n
}

func TestMaintenanceOfAKubernetesNode(t *testing.T) {
	const cloud, hardware = health.DefaultMaintenanceType, health.HardwareIssuesSuspected
	said := func(kind string) health.Maintenance {
		return health.Maintenance{Type: kind, Reason: "R", Message: "m"}
	}
	for name, c := range map[string]struct {
		node *corev1.Node
		want health.Maintenance
	}{
		"no condition says anything":                                   {kubernetesNode(nil, condition("Ready", "True")), health.Maintenance{}},
		"the cloud announces maintenance":                              {kubernetesNode(nil, condition(cloud, "True")), said(cloud)},
		"hardware is suspected":                                        {kubernetesNode(nil, condition(hardware, "True")), said(hardware)},
		"a condition that is False hides no other before it":           {kubernetesNode(nil, condition(cloud, "True"), condition(hardware, "False")), said(cloud)},
		"a condition that is False hides no other after it":            {kubernetesNode(nil, condition(hardware, "False"), condition(cloud, "True")), said(cloud)},
		"of two conditions the first by type is told":                  {kubernetesNode(nil, condition(cloud, "True"), condition(hardware, "True")), said(hardware)},
		"both conditions are over":                                     {kubernetesNode(nil, condition(cloud, "False"), condition(hardware, "False")), health.Maintenance{}},
		"nobody knows whether maintenance is announced":                {kubernetesNode(nil, condition(cloud, "Unknown")), health.Maintenance{Unknown: true}},
		"one condition of two is known":                                {kubernetesNode(nil, condition(cloud, "True"), condition(hardware, "Unknown")), said(cloud)},
		"the node has a label that is ignored":                         {kubernetesNode(map[string]string{"pool": "spare"}, condition(cloud, "True")), health.Maintenance{}},
		"the node has a label that is ignored with an empty value":     {kubernetesNode(map[string]string{"keep": ""}, condition(cloud, "True")), health.Maintenance{}},
		"the node has a label that is ignored only with another value": {kubernetesNode(map[string]string{"pool": "main"}, condition(cloud, "True")), said(cloud)},
	} {
		t.Run(name, func(t *testing.T) {
			got := watched().Of(c.node)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want, +got):\n%s", diff)
			}
			reason := node.Reason{Text: got.DrainReason()}
			if (reason.Text != "") != got.Announced() || reason.Text != "" && !reason.Ours() {
				t.Errorf("the reason is %q", reason.Text)
			}
		})
	}
}

// TestTheOrderOfConditionsDoesNotMatter holds against the predecessor's way, in which the last condition won.
func TestTheOrderOfConditionsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		conditions := rapid.SliceOf(rapid.Custom(func(t *rapid.T) corev1.NodeCondition {
			return condition(rapid.SampledFrom([]string{"Ready", health.DefaultMaintenanceType, health.HardwareIssuesSuspected}).Draw(t, "type"),
				corev1.ConditionStatus(rapid.SampledFrom([]string{"True", "False", "Unknown", ""}).Draw(t, "status")))
		})).Draw(t, "conditions")
		one := watched().Of(kubernetesNode(nil, conditions...))
		other := watched().Of(kubernetesNode(nil, rapid.Permutation(conditions).Draw(t, "other order")...))
		if one != other {
			t.Fatalf("%+v and %+v", one, other)
		}
	})
}
