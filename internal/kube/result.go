// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Action is what happened to one object.
type Action string

// The actions of a Result.
const (
	// Unchanged: nothing differed, so nothing was sent.
	Unchanged Action = "unchanged"
	// Created: the object did not exist.
	Created Action = "created"
	// Updated: the object differed, or somebody had changed it.
	Updated Action = "updated"
	// Adopted: the object existed without an owner, looked like ours, and is ours now.
	Adopted Action = "adopted"
	// Recreated: the object could not be changed in place; it was deleted and made anew.
	Recreated Action = "recreated"
	// Pruned: the object was ours, is no longer wanted, and was deleted.
	Pruned Action = "pruned"
	// Waiting: the object, or its predecessor, is being deleted. Its last event wakes the owner's reconciler.
	Waiting Action = "waiting"
)

// Change is what happened to one object.
type Change struct {
	Action Action
	Object Ref
	// Path is the first field that differed, for logs; empty where there is no single one. Never a value.
	Path string
}

// Result is what Apply or Prune did, in order. Objects that failed are in the error instead.
type Result struct{ Changes []Change }

// Wrote reports whether anything was sent to the server.
func (r Result) Wrote() bool {
	return slices.ContainsFunc(r.Changes, func(c Change) bool { return c.Action != Unchanged && c.Action != Waiting })
}

// Join returns both results as one.
func (r Result) Join(other Result) Result {
	return Result{Changes: append(slices.Clone(r.Changes), other.Changes...)}
}

// String lists what changed, for a log line or an event: "created ConfigMap team-a/slurm-config, updated Service
// team-a/slurm-controller (spec.ports)". It is empty when nothing did.
func (r Result) String() string {
	var parts []string
	for _, c := range r.Changes {
		if c.Action == Unchanged {
			continue
		}
		part := string(c.Action) + " " + c.Object.String()
		if c.Action == Waiting {
			part = "waiting for " + c.Object.String() + " to be deleted"
		} else if c.Path != "" {
			part += " (" + c.Path + ")"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

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
