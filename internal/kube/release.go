// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Release removes owner from the owners of a Shared object, which is deleted with its last owner. Other objects are left alone.
func (a *Applier) Release(ctx context.Context, owner, shared client.Object) error {
	live := newOf(shared)
	if err := a.client.Get(ctx, client.ObjectKeyFromObject(shared), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	isOwner := func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() }
	references := live.GetOwnerReferences()
	if !slices.ContainsFunc(references, isOwner) || live.GetDeletionTimestamp() != nil {
		return nil
	}
	rest := slices.DeleteFunc(slices.Clone(references), isOwner)
	uid, version := live.GetUID(), live.GetResourceVersion()
	var err error
	if len(rest) == 0 {
		err = a.client.Delete(ctx, live, client.Preconditions{UID: &uid, ResourceVersion: &version})
	} else {
		before, ok := live.DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("copying %s: the copy is no object", refOf(a.scheme, live))
		}
		live.SetOwnerReferences(rest)
		err = a.client.Patch(ctx, live, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // of a change an event is on its way
		return fmt.Errorf("releasing %s: %w", refOf(a.scheme, live), err)
	}
	return nil
}
