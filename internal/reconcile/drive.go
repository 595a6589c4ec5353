// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/coxswain-hpc/coxswain/internal/kube"
)

// Apply carries out what all plans have in common: it deletes and releases what is not wanted, applies what was rendered, and
// prunes the given kinds of objects. With problems only the deletions take place, and with an object that cannot be written nothing.
func (b *Base) Apply(ctx context.Context, obj client.Object, plan *Plan, prunes ...client.Object) error {
	if len(plan.Problems) > 0 {
		return b.deleteAll(ctx, obj, plan.Delete)
	}
	desired := make([]client.Object, len(plan.Objects))
	for i, o := range plan.Objects {
		desired[i] = o
	}
	pending, err := b.Applier.Examine(ctx, obj, desired...)
	if err != nil {
		return err
	}
	if err := b.deleteAll(ctx, obj, plan.Delete); err != nil {
		return err
	}
	for _, shared := range plan.Release {
		if err := b.Applier.Release(ctx, obj, shared); err != nil {
			return err
		}
	}
	result, err := pending.Apply(ctx)
	if err == nil && len(prunes) > 0 {
		var pruned kube.Result
		pruned, err = b.Applier.Prune(ctx, obj, append(desired, plan.Keep...), prunes...)
		result = result.Join(pruned)
	}
	if result.Wrote() {
		log.FromContext(ctx).Info("Applied what was rendered", "changes", result.String())
	}
	return err
}

// deleteAll deletes objects that the owner controls. They are looked up on the server, since no cache has them.
func (b *Base) deleteAll(ctx context.Context, owner client.Object, objects []client.Object) error {
	var errs []error
	for _, o := range objects {
		errs = append(errs, b.deleteOwned(ctx, owner, o))
	}
	return errors.Join(errs...)
}

func (b *Base) deleteOwned(ctx context.Context, owner, o client.Object) error {
	gvk, err := b.Client.GroupVersionKindFor(o)
	if err != nil {
		return fmt.Errorf("finding the kind of %T: %w", o, err)
	}
	key := client.ObjectKeyFromObject(o)
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(gvk)
	err = b.Live.Get(ctx, key, live)
	if err == nil && metav1.IsControlledBy(live, owner) && live.DeletionTimestamp == nil {
		uid := live.UID
		err = b.Client.Delete(ctx, live, client.Preconditions{UID: &uid})
		if err == nil {
			log.FromContext(ctx).Info("Deleted an object that is not wanted any more", "kind", gvk.Kind, "name", key)
		}
	}
	if err = IgnoreGone(err); err != nil {
		return fmt.Errorf("deleting %s %s: %w", gvk.Kind, key, err)
	}
	return nil
}

// IgnoreGone forgives that an object is gone, or that another one has its name, or that it has just changed: an event is on
// its way.
func IgnoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
