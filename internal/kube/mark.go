// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Marks are labels and annotations that one field manager has on a pod.
type Marks struct {
	Labels, Annotations map[string]string
	// ResourceVersion is that of the pod as it was read, if the pod must not have changed since; empty if that does not matter.
	ResourceVersion string
}

// Mark gives a pod exactly these marks of a field manager: others that it has put there before are removed. It returns the marked pod
// with only name, UID and resource version, for Changed.
func Mark(ctx context.Context, c client.Client, pod *corev1.Pod, manager string, marks Marks) (*corev1.Pod, error) {
	apply := corev1ac.Pod(pod.Name, pod.Namespace).WithUID(pod.UID).WithLabels(marks.Labels).WithAnnotations(marks.Annotations)
	if marks.ResourceVersion != "" {
		apply.WithResourceVersion(marks.ResourceVersion)
	}
	if err := c.Apply(ctx, apply, client.FieldOwner(manager), client.ForceOwnership); err != nil {
		return nil, fmt.Errorf("marking Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	marked := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}}
	if apply.ResourceVersion != nil {
		marked.ResourceVersion = *apply.ResourceVersion
	}
	return marked, nil
}
