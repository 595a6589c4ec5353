// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package restapi

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
)

// loginSets returns the LoginSets of a Controller; slurmrestd is to know their users.
func (r *reconciler) loginSets(ctx context.Context, c *slinkyv1beta1.Controller) ([]slinkyv1beta1.LoginSet, error) {
	var list slinkyv1beta1.LoginSetList
	err := r.Client.List(ctx, &list, client.InNamespace(c.Namespace), client.MatchingFields{reference.Index: reference.To("Controller", c.Name)})
	if err != nil {
		return nil, fmt.Errorf("listing the LoginSets of %s/%s: %w", c.Namespace, c.Name, err)
	}
	var out []slinkyv1beta1.LoginSet
	for _, l := range list.Items {
		if l.Spec.ControllerRef.InNamespace(c.Namespace) == nil {
			out = append(out, l)
		}
	}
	return out, nil
}

// listsChange lets through LoginSets that have users when they come or go, and those that get their first or lose their last. The users
// themselves are in a ConfigMap, which running pods follow.
func listsChange() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return hasList(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			// It is another LoginSet, perhaps of another Controller, when deletion and creation came as one event.
			return hasList(e.ObjectOld) != hasList(e.ObjectNew) || e.ObjectOld.GetUID() != e.ObjectNew.GetUID()
		},
		DeleteFunc: func(e event.DeleteEvent) bool { return hasList(e.Object) },
	}
}

func hasList(o client.Object) bool {
	l, ok := o.(*slinkyv1beta1.LoginSet)
	return ok && len(l.Spec.Users) > 0
}
