// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
)

// history decides about the ControllerRevisions of a NodeSet.
func history(f facts) nodesetplan.History {
	used := map[string]bool{}
	for i := range f.pods {
		used[f.pods[i].Labels[slinkyv1beta1.LabelRevisionHash]] = true
	}
	var known []nodesetplan.Revision
	for _, s := range f.stored {
		known = append(known, nodesetplan.Revision{
			Name: s.Name, Hash: s.Labels[slinkyv1beta1.LabelRevisionHash], Number: s.Revision, Data: slurmd.Canonical(s.Data.Raw),
			Ours: metav1.GetControllerOf(s) != nil,
		})
	}
	var collisions int32
	if count := f.set.Status.CollisionCount; count != nil {
		collisions = *count
	}
	hash := func(c int32) string { return slurmd.RevisionHash(f.revision, c) }
	return nodesetplan.Keep(known, f.revision, collisions, hash, used, f.set.RevisionHistoryLimit())
}

// revisions returns the revisions that the NodeSet controls, and those without a controller that were made for a NodeSet of its name.
func (r *reconciler) revisions(ctx context.Context, n *slinkyv1beta1.NodeSet) (map[string]*appsv1.ControllerRevision, error) {
	var list appsv1.ControllerRevisionList
	err := r.Client.List(ctx, &list, client.InNamespace(n.Namespace), client.MatchingLabels(slurmd.Labels(n).Selector()))
	if err != nil {
		return nil, fmt.Errorf("listing the revisions of NodeSet %s/%s: %w", n.Namespace, n.Name, err)
	}
	out := map[string]*appsv1.ControllerRevision{}
	for i := range list.Items {
		item := &list.Items[i]
		if owner := metav1.GetControllerOf(item); item.DeletionTimestamp == nil && (owner == nil || owner.UID == n.UID) {
			out[item.Name] = item
		}
	}
	return out, nil
}

// keep carries out what was decided about the revisions.
func (r *reconciler) keep(ctx context.Context, n *slinkyv1beta1.NodeSet, f facts, h nodesetplan.History) error {
	var errs []error
	if h.Create {
		made := slurmd.ControllerRevision(n, f.revision, h.Hash, h.Number)
		err := controllerutil.SetControllerReference(n, made, r.Client.Scheme())
		if err == nil {
			err = r.Client.Create(ctx, made, client.FieldOwner(kube.FieldManager))
		}
		switch {
		case apierrors.IsAlreadyExists(err):
			errs = append(errs, r.whoseRevision(ctx, n, made))
		case err != nil:
			return fmt.Errorf("creating ControllerRevision %s/%s: %w", made.Namespace, made.Name, err)
		default:
			r.Applier.Wrote(n, made)
		}
	}
	for _, name := range h.Adopt {
		errs = append(errs, r.changeRevision(ctx, n, f.stored[name], func(c *appsv1.ControllerRevision) error {
			return controllerutil.SetControllerReference(n, c, r.Client.Scheme())
		}))
	}
	if h.Renumber != "" {
		errs = append(errs, r.changeRevision(ctx, n, f.stored[h.Renumber], func(c *appsv1.ControllerRevision) error {
			c.Revision = h.Number
			return nil
		}))
	}
	for _, name := range h.Delete {
		old := f.stored[name]
		err := r.Client.Delete(ctx, old, client.Preconditions{UID: &old.UID, ResourceVersion: &old.ResourceVersion})
		if err == nil {
			r.Applier.Deleted(n, old)
		}
		if err = reconcile.IgnoreGone(err); err != nil {
			errs = append(errs, fmt.Errorf("deleting ControllerRevision %s/%s: %w", old.Namespace, name, err))
		}
	}
	return errors.Join(errs...)
}

// whoseRevision returns a problem when the object with the name of a revision belongs to somebody else. A revision of a NodeSet that was
// deleted and made anew goes with it; an event follows.
func (r *reconciler) whoseRevision(ctx context.Context, n *slinkyv1beta1.NodeSet, wanted *appsv1.ControllerRevision) error {
	live := &appsv1.ControllerRevision{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(wanted), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	holder := metav1.GetControllerOf(live)
	if live.DeletionTimestamp != nil || holder != nil && holder.Kind == "NodeSet" && holder.Name == n.Name {
		return nil
	}
	return &kube.ConflictError{
		Object: kube.Ref{Kind: "ControllerRevision", Namespace: wanted.Namespace, Name: wanted.Name},
		Owner:  kube.Ref{Kind: "NodeSet", Namespace: n.Namespace, Name: n.Name},
	}
}

func (r *reconciler) changeRevision(ctx context.Context, n *slinkyv1beta1.NodeSet, c *appsv1.ControllerRevision, edit func(*appsv1.ControllerRevision) error) error {
	changed := c.DeepCopy()
	err := edit(changed)
	if err == nil {
		err = r.Client.Patch(ctx, changed, client.MergeFromWithOptions(c, client.MergeFromWithOptimisticLock{}))
	}
	if err == nil {
		r.Applier.Wrote(n, changed)
		*c = *changed
	}
	if err = reconcile.IgnoreGone(err); err != nil {
		return fmt.Errorf("changing ControllerRevision %s/%s: %w", c.Namespace, c.Name, err)
	}
	return nil
}
