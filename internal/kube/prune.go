// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// KeyLabel marks Secrets that hold what cannot be made again without breaking a running cluster: the auth/slurm key, the
// JWT key, a database password. A Secret with this label, whatever its value, is never pruned and never recreated.
const KeyLabel = "coxswain.dev/key"

// OwnerIndex is the name of the cache's index of objects by the UID of their controller.
const OwnerIndex = "coxswain.dev/controller-uid"

// Prunable are the kinds that Prune accepts, and no others: everything in them can be made again from the spec.
// PersistentVolumeClaims and pods are missing on purpose.
func Prunable() []client.Object {
	return []client.Object{
		&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Service{}, &corev1.ServiceAccount{},
		&rbacv1.Role{}, &rbacv1.RoleBinding{},
		&appsv1.StatefulSet{}, &appsv1.Deployment{}, &appsv1.DaemonSet{}, &batchv1.Job{}, &batchv1.CronJob{},
		&policyv1.PodDisruptionBudget{}, &networkingv1.NetworkPolicy{}, &discoveryv1.EndpointSlice{},
	}
}

// isPrunable reports whether kind is in Prunable, or one that a SlurmCluster composes: a component, or files for its jail.
func (a *Applier) isPrunable(kind schema.GroupKind) bool {
	files := schema.GroupKind{Group: "slurm.nebius.ai", Kind: "JailedConfig"}
	return kind.Group == "slinky.slurm.net" || kind == files || slices.ContainsFunc(Prunable(), func(obj client.Object) bool {
		gvk, err := apiutil.GVKForObject(obj, a.scheme)
		return err == nil && gvk.GroupKind() == kind
	})
}

// SetupIndexes adds the index by controller to the given kinds of a cache, before it starts. Every kind that a
// controller prunes needs it once per process.
func SetupIndexes(ctx context.Context, indexer client.FieldIndexer, kinds ...client.Object) error {
	for _, kind := range kinds {
		if err := indexer.IndexField(ctx, kind, OwnerIndex, ControllerUID); err != nil {
			return fmt.Errorf("indexing %T by controller: %w", kind, err)
		}
	}
	return nil
}

// ControllerUID is the index function of OwnerIndex.
func ControllerUID(obj client.Object) []string {
	if controller := metav1.GetControllerOf(obj); controller != nil {
		return []string{string(controller.UID)}
	}
	return nil
}

// Prune deletes the objects of the given kinds that owner controls and that are not in keep. It decides from the cache
// and deletes only the very version that it saw: what has changed since stays until the next reconcile. Kinds outside
// of Prunable and the Slinky components are an error.
func (a *Applier) Prune(ctx context.Context, owner client.Object, keep []client.Object, kinds ...client.Object) (Result, error) {
	kept, err := a.identities(keep)
	if err != nil {
		return Result{}, err
	}
	var result Result
	var failures []error
	for _, kind := range kinds {
		pruned, err := a.pruneKind(ctx, owner, kept, kind)
		result = result.Join(pruned)
		failures = append(failures, err)
	}
	return result, errors.Join(failures...)
}

// identity identifies an object within a namespace.
type identity struct {
	kind schema.GroupKind
	name string
}

func (a *Applier) identities(objects []client.Object) (map[identity]bool, error) {
	out := make(map[identity]bool, len(objects))
	for _, obj := range objects {
		obj, _ = unwrap(obj)
		gvk, err := apiutil.GVKForObject(obj, a.scheme)
		if err != nil {
			return nil, fmt.Errorf("finding the kind of %T %s: %w", obj, obj.GetName(), err)
		}
		out[identity{gvk.GroupKind(), obj.GetName()}] = true
	}
	return out, nil
}

func (a *Applier) pruneKind(ctx context.Context, owner client.Object, keep map[identity]bool, kind client.Object) (Result, error) {
	gvk, err := apiutil.GVKForObject(kind, a.scheme)
	if err != nil {
		return Result{}, fmt.Errorf("finding the kind of %T: %w", kind, err)
	}
	if !a.isPrunable(gvk.GroupKind()) {
		return Result{}, fmt.Errorf("pruning %s: objects of this kind are never pruned", gvk.Kind)
	}
	items, err := a.listOwned(ctx, owner, gvk)
	if err != nil {
		return Result{}, err
	}
	var result Result
	var failures []error
	for _, obj := range items {
		if keep[identity{gvk.GroupKind(), obj.GetName()}] || obj.GetDeletionTimestamp() != nil ||
			!metav1.IsControlledBy(obj, owner) || isKey(obj) {
			continue
		}
		pruned, err := a.pruneOne(ctx, owner, obj, gvk)
		if err != nil {
			failures = append(failures, err)
		} else if pruned {
			result.Changes = append(result.Changes, Change{Action: Pruned, Object: refOf(a.scheme, obj)})
		}
	}
	return result, errors.Join(failures...)
}

func (a *Applier) listOwned(ctx context.Context, owner client.Object, gvk schema.GroupVersionKind) ([]client.Object, error) {
	listed, err := a.scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", gvk.Kind, err)
	}
	list, ok := listed.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("listing %s: %T is no list", gvk.Kind, listed)
	}
	err = a.client.List(ctx, list, client.InNamespace(owner.GetNamespace()), client.MatchingFields{OwnerIndex: string(owner.GetUID())})
	if err != nil {
		return nil, fmt.Errorf("listing %s of %s: %w", gvk.Kind, refOf(a.scheme, owner), err)
	}
	var items []client.Object
	err = meta.EachListItem(list, func(item runtime.Object) error {
		if obj, ok := item.(client.Object); ok {
			items = append(items, obj)
		}
		return nil
	})
	return items, err
}

// pruneOne returns false when the object has changed or gone since the cache saw it.
func (a *Applier) pruneOne(ctx context.Context, owner, obj client.Object, gvk schema.GroupVersionKind) (bool, error) {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	err := a.client.Delete(ctx, obj, client.Preconditions{UID: &uid, ResourceVersion: &version},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsConflict(err):
		// The event of that change is on its way and wakes the owner's reconciler.
		log.FromContext(ctx).V(1).Info("Left an object alone that changed while it was about to be pruned", "object", refOf(a.scheme, obj).String())
		return false, nil
	case err != nil:
		return false, fmt.Errorf("pruning %s: %w", refOf(a.scheme, obj), err)
	}
	a.written.deleted(owner, obj, gvk)
	return true, nil
}

func isKey(obj client.Object) bool {
	_, secret := obj.(*corev1.Secret)
	_, labelled := obj.GetLabels()[KeyLabel]
	return secret && labelled
}
