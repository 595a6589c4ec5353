// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// ControllerOf maps an object to the Controller that it refers to.
func ControllerOf(_ context.Context, o client.Object) []ctrl.Request {
	var ref slinkyv1beta1.ObjectReference
	switch o := o.(type) {
	case *slinkyv1beta1.NodeSet:
		ref = o.Spec.ControllerRef
	case *slinkyv1beta1.LoginSet:
		ref = o.Spec.ControllerRef
	case *slinkyv1beta1.RestApi:
		ref = o.Spec.ControllerRef
	}
	if ref.Name == "" {
		return nil
	}
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: ref.Name}}}
}

// TermsChange lets changes pass that matter to the object that is referred to. The counts in the status of a NodeSet change with every
// single worker, and each pass over a Controller reads Secrets from the API server.
func TermsChange() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration() || desired(before) != desired(after) ||
			(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
			!slices.Equal(before.GetFinalizers(), after.GetFinalizers())
	}}
}

// desired is how many workers a NodeSet is to have; in scaling mode DaemonSet only its status has that.
func desired(o client.Object) int32 {
	if set, ok := o.(*slinkyv1beta1.NodeSet); ok {
		return set.Status.Desired
	}
	return 0
}
