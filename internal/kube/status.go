// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// PatchStatus writes the status of after, if it differs from that of before, the object as it was read. It reports whether it wrote.
// The whole status belongs to us, so this is for our own kinds only: the status of a pod is the kubelet's.
//
// The write is tied to the resource version of after. That is the one of before, unless the caller has changed the object in the
// version that was read, and recorded the result in after. If the object has changed meanwhile, nothing is written and the error satisfies
// apierrors.IsConflict: what was computed may be out of date, and the reconcile is to be repeated. It also keeps several writers of one
// status from undoing each other's conditions. It is no error if the object is gone. After a write, after has the new resource version,
// so that the same pass may write again.
func (a *Applier) PatchStatus(ctx context.Context, before, after client.Object) (bool, error) {
	was, err := fields(before)
	if err != nil {
		return false, fmt.Errorf("encoding %s: %w", refOf(a.scheme, before), err)
	}
	is, err := fields(after)
	if err != nil {
		return false, fmt.Errorf("encoding %s: %w", refOf(a.scheme, after), err)
	}
	if equality.Semantic.DeepEqual(was["status"], is["status"]) {
		return false, nil
	}
	gvk, err := apiutil.GVKForObject(before, a.scheme)
	if err != nil {
		return false, fmt.Errorf("finding the kind of %T: %w", before, err)
	}
	status, _ := is["status"].(map[string]any)
	if status == nil {
		status = map[string]any{}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(before.GetNamespace())
	u.SetName(before.GetName())
	u.SetUID(before.GetUID())
	u.SetResourceVersion(after.GetResourceVersion())
	err = a.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(FieldManager), client.ForceOwnership)
	if apierrors.IsNotFound(err) {
		return false, nil // the object is gone
	}
	if err != nil {
		return false, fmt.Errorf("writing the status of %s: %w", refOf(a.scheme, before), err)
	}
	after.SetResourceVersion(u.GetResourceVersion())
	a.written.wrote(before, u, false)
	return true, nil
}

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
