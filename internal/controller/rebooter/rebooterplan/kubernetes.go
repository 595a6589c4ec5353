// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rebooterplan

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// NodeOf reads what matters of a Node.
func NodeOf(n *corev1.Node) Node {
	return Node{
		Drain: conditionOf(n, nebiusv1alpha1.ConditionSlurmNodeDrain), Reboot: conditionOf(n, nebiusv1alpha1.ConditionSlurmNodeReboot),
		Cordoned: n.Spec.Unschedulable, Tainted: slices.ContainsFunc(n.Spec.Taints, isOurs),
		Marks: Marks{
			Cordoned: n.Annotations[nebiusv1alpha1.AnnotationRebooterCordoned] != "", Tainted: n.Annotations[nebiusv1alpha1.AnnotationRebooterTainted] != "",
			DrainOwn: n.Annotations[nebiusv1alpha1.AnnotationDrainedForReboot] != "", RebootFrom: n.Annotations[nebiusv1alpha1.AnnotationRebootFrom],
		},
	}
}

// cordonedByUs reports whether the rebooter was the last to set spec.unschedulable, by the managed fields of the Node. Somebody else may
// have uncordoned the node and cordoned it again while no rebooter ran.
func cordonedByUs(n *corev1.Node) bool {
	return slices.ContainsFunc(n.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		if e.Manager != FieldManager || e.Subresource != "" || e.FieldsV1 == nil {
			return false
		}
		var fields struct {
			Spec map[string]any `json:"f:spec"`
		}
		if err := json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields); err != nil {
			return false // what cannot be read is not known to be ours
		}
		_, set := fields.Spec["f:unschedulable"]
		return set
	})
}

func isOurs(t corev1.Taint) bool { ours := nebiusv1alpha1.RebooterTaint(); return t.MatchTaint(&ours) }

func conditionOf(n *corev1.Node, kind corev1.NodeConditionType) Condition {
	for _, c := range n.Status.Conditions {
		if c.Type == kind {
			return Condition{Status: c.Status, Reason: c.Reason, Message: c.Message}
		}
	}
	return Condition{}
}

// PodOf reads what matters of a pod.
func PodOf(p *corev1.Pod) Pod {
	controller := metav1.GetControllerOf(p)
	return Pod{
		UID: p.UID, Namespace: p.Namespace, Name: p.Name,
		DaemonSet: controller != nil && controller.Kind == "DaemonSet",
		Mirror:    p.Annotations[corev1.MirrorPodAnnotationKey] != "",
		Tolerates: slices.ContainsFunc(p.Spec.Tolerations, tolerates),
		Protected: p.Labels[slinkyv1beta1.LabelPodProtect] == "true",
		Finished:  p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed,
		Leaving:   p.DeletionTimestamp != nil,
	}
}

// tolerates reports whether a toleration lets a pod stay on a node with the taint. One with a time limit does not.
func tolerates(t corev1.Toleration) bool {
	taint := nebiusv1alpha1.RebooterTaint()
	switch {
	case t.TolerationSeconds != nil, t.Effect != "" && t.Effect != taint.Effect, t.Key != "" && t.Key != taint.Key:
		return false
	case t.Operator == corev1.TolerationOpExists:
		return true
	}
	return (t.Operator == "" || t.Operator == corev1.TolerationOpEqual) && t.Key == taint.Key && t.Value == taint.Value
}

// Write makes the changes of a step to a Node. Of its spec and of its status at most one changes.
func Write(n *corev1.Node, step Next, now time.Time) {
	switch step.Action {
	case Tell:
		setCondition(n, nebiusv1alpha1.ConditionSlurmNodeDrain, step.Drain, now)
		setCondition(n, nebiusv1alpha1.ConditionSlurmNodeReboot, step.Reboot, now)
	case Cordon:
		n.Spec.Unschedulable = true
	case SetTaint:
		n.Spec.Taints = append(slices.Clip(n.Spec.Taints), nebiusv1alpha1.RebooterTaint())
	case Release:
		had := NodeOf(n).Marks
		if had.Cordoned && cordonedByUs(n) {
			n.Spec.Unschedulable = false
		}
		if had.Tainted {
			n.Spec.Taints = slices.DeleteFunc(slices.Clone(n.Spec.Taints), isOurs)
		}
	case Wait, Evict, Reboot:
		return
	}
	setMarks(n, step.Marks)
}

func setMarks(n *corev1.Node, m Marks) {
	out := maps.Clone(n.Annotations)
	if out == nil {
		out = map[string]string{}
	}
	set := func(key, value string, wanted bool) {
		if wanted {
			out[key] = value
		} else {
			delete(out, key)
		}
	}
	set(nebiusv1alpha1.AnnotationRebooterCordoned, "true", m.Cordoned)
	set(nebiusv1alpha1.AnnotationRebooterTainted, "true", m.Tainted)
	set(nebiusv1alpha1.AnnotationDrainedForReboot, "true", m.DrainOwn)
	set(nebiusv1alpha1.AnnotationRebootFrom, m.RebootFrom, m.RebootFrom != "")
	n.Annotations = out
}

// setCondition sets one condition, and its transition time if the status changes.
func setCondition(n *corev1.Node, kind corev1.NodeConditionType, want *Condition, now time.Time) {
	if want == nil {
		return
	}
	at := metav1.NewTime(now.Truncate(time.Second))
	c := corev1.NodeCondition{
		Type: kind, Status: want.Status, Reason: want.Reason, Message: want.Message, LastHeartbeatTime: at, LastTransitionTime: at,
	}
	i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind })
	if i < 0 {
		n.Status.Conditions = append(slices.Clip(n.Status.Conditions), c)
		return
	}
	if n.Status.Conditions[i].Status == c.Status {
		c.LastTransitionTime = n.Status.Conditions[i].LastTransitionTime
	}
	n.Status.Conditions = slices.Clone(n.Status.Conditions)
	n.Status.Conditions[i] = c
}
