// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/overlay"
)

// ObjectMeta is the metadata of an object made for owner: the owner's own labels and annotations, those of user, and the
// generated labels, which win.
func ObjectMeta(owner metav1.Object, name string, set label.Set, user ...slinkyv1beta1.Metadata) metav1.ObjectMeta {
	labels := []map[string]string{owner.GetLabels()}
	annotations := []map[string]string{foreign(owner.GetAnnotations())}
	for _, m := range user {
		labels = append(labels, m.Labels)
		annotations = append(annotations, m.Annotations)
	}
	return metav1.ObjectMeta{
		Name:        name,
		Namespace:   owner.GetNamespace(),
		Labels:      set.Labels(labels...),
		Annotations: noneIfEmpty(label.Merge(annotations...)),
	}
}

// foreign leaves out annotations that describe the owner itself and mean nothing, or harm, on what is made for it.
func foreign(annotations map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range annotations {
		if strings.HasPrefix(key, "kubectl.kubernetes.io/") || strings.HasPrefix(key, "coxswain.dev/") {
			continue
		}
		out[key] = value
	}
	return out
}

// Template is a pod template: spec with the user's pod spec laid over it, and the metadata of the user's template with
// the generated labels and annotations. The owner's own labels and annotations are left out on purpose: a release label
// that Helm changes with each upgrade must not restart daemons (docs/decisions/002-metadata-of-pods.md). The error is a
// problem.Problem below path.
func Template(spec corev1.PodSpec, user slinkyv1beta1.PodTemplate, set label.Set, annotations map[string]string, path string) (corev1.PodTemplateSpec, error) {
	merged, err := overlay.PodSpec(spec, user.Spec, path+".spec")
	generated := label.Merge(user.Metadata.Annotations, annotations)
	if len(spec.Containers) > 0 {
		generated[label.DefaultContainer] = spec.Containers[0].Name
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: set.Labels(user.Metadata.Labels), Annotations: generated},
		Spec:       merged,
	}, err
}

func noneIfEmpty(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
}
