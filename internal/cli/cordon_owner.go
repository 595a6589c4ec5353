// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// operatorManagers is how the names of the operator's field managers begin.
const operatorManagers = "coxswain"

// cordonOwners returns the field managers that have set annotation pod-cordon of a pod and are not the operator's.
func cordonOwners(p *corev1.Pod) (out []string) {
	for _, entry := range p.ManagedFields {
		if entry.FieldsV1 == nil || entry.Manager == operatorManagers || strings.HasPrefix(entry.Manager, operatorManagers+"-") {
			continue
		}
		var fields struct {
			Metadata struct {
				Annotations map[string]any `json:"f:annotations"`
			} `json:"f:metadata"`
		}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			continue // not a set of fields that the API server writes
		}
		if _, ok := fields.Metadata.Annotations["f:"+slinkyv1beta1.AnnotationPodCordon]; ok && !slices.Contains(out, entry.Manager) {
			out = append(out, entry.Manager)
		}
	}
	return out
}

// whoCordoned returns why annotation pod-cordon of a pod is there.
func whoCordoned(p *corev1.Pod) string {
	if p.Annotations[slinkyv1beta1.AnnotationPodCordon] != "true" {
		return ""
	}
	var why []string
	if p.Annotations[slinkyv1beta1.AnnotationRetired] != "" {
		why = append(why, "by the operator, because it is being removed")
	}
	if p.Annotations[slinkyv1beta1.AnnotationNodeCordoned] == "true" {
		why = append(why, "by the operator, because its Kubernetes node is cordoned")
	}
	owners := cordonOwners(p)
	switch {
	case len(owners) > 0:
		why = append(why, "by a user, with "+strings.Join(owners, ", ")+", until \"kubectl slurm uncordon\"")
	case len(why) == 0:
		why = append(why, "by a user, until \"kubectl slurm uncordon\"")
	}
	text := "The pod is cordoned " + strings.Join(why, "; and ") + "."
	if reason := p.Annotations[slinkyv1beta1.AnnotationPodCordonReason]; reason != "" {
		text += " The user's reason: " + reason
	}
	return text
}
