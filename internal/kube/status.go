// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
