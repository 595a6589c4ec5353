// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// KubeNodes returns for each Kubernetes node how well it fits workers with this pod spec, in the order of names. Like the scheduler it
// looks at node selector, required node affinity and taints; the scheduler alone looks at what a node has left. Hostname is the host name
// that a node asks for; NameHosts gives them out in scaling mode DaemonSet, where workers are named after nodes.
func KubeNodes(spec *corev1.PodSpec, all []corev1.Node) []KubeNode {
	out := make([]KubeNode, 0, len(all))
	for i := range all {
		out = append(out, KubeNode{Name: all[i].Name, Hostname: hostname(&all[i]), Fit: fit(spec, &all[i])})
	}
	slices.SortFunc(out, func(a, b KubeNode) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func fit(spec *corev1.PodSpec, node *corev1.Node) Fit {
	lasting := func(t *corev1.Taint) bool { return !passing(t) }
	switch {
	case !selects(spec, node), !tolerates(spec, node, func(t *corev1.Taint) bool { return lasting(t) && t.Effect == corev1.TaintEffectNoExecute }):
		return Unfit
	case !tolerates(spec, node, lasting):
		return Stays
	case node.Spec.Unschedulable:
		return Fits
	case !tolerates(spec, node, func(*corev1.Taint) bool { return true }):
		return Belongs
	default:
		return Starts
	}
}

// passing reports whether Kubernetes has set the taint because of the node's present condition.
func passing(t *corev1.Taint) bool {
	return strings.HasPrefix(t.Key, "node.kubernetes.io/") || strings.HasPrefix(t.Key, "node.cloudprovider.kubernetes.io/")
}

// tolerates reports whether the pods tolerate all taints of the node that count and keep pods away.
func tolerates(spec *corev1.PodSpec, node *corev1.Node, counts func(*corev1.Taint) bool) bool {
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if taint.Effect == corev1.TaintEffectPreferNoSchedule || !counts(taint) {
			continue
		}
		if !slices.ContainsFunc(spec.Tolerations, func(t corev1.Toleration) bool { return allows(t, taint) }) {
			return false
		}
	}
	return true
}

// allows reports whether a toleration matches the taint.
func allows(t corev1.Toleration, taint *corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case corev1.TolerationOpExists:
		return true
	case corev1.TolerationOpEqual, "":
		return t.Key != "" && t.Value == taint.Value
	default:
		return false
	}
}

// selects reports whether node selector and required node affinity match the node.
func selects(spec *corev1.PodSpec, node *corev1.Node) bool {
	if !labels.SelectorFromSet(spec.NodeSelector).Matches(labels.Set(node.Labels)) {
		return false
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	return slices.ContainsFunc(spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms,
		func(term corev1.NodeSelectorTerm) bool {
			// A term without any requirement selects nothing.
			return len(term.MatchExpressions)+len(term.MatchFields) > 0 &&
				matches(term.MatchExpressions, node.Labels) && matches(term.MatchFields, map[string]string{"metadata.name": node.Name})
		})
}

// matches reports whether all requirements hold for a set of labels. An invalid one holds for none.
func matches(requirements []corev1.NodeSelectorRequirement, set labels.Set) bool {
	operators := map[corev1.NodeSelectorOperator]selection.Operator{
		corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn,
		corev1.NodeSelectorOpExists: selection.Exists, corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
		corev1.NodeSelectorOpGt: selection.GreaterThan, corev1.NodeSelectorOpLt: selection.LessThan,
	}
	for _, r := range requirements {
		requirement, err := labels.NewRequirement(r.Key, operators[r.Operator], r.Values)
		if err != nil || !requirement.Matches(set) {
			return false
		}
	}
	return true
}
