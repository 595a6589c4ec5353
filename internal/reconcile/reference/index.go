// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Index is the cache's index of objects by what they refer to, as made by To.
const Index = "coxswain.dev/references"

// To is one entry of Index: kind and name of a referenced object in the same namespace.
func To(kind, name string) string { return kind + "/" + name }

// AddIndex adds the Index of a kind. references returns what an object refers to, see To.
func AddIndex[T client.Object](ctx context.Context, mgr ctrl.Manager, obj T, references func(obj T) []string) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, obj, Index, func(o client.Object) []string {
		if typed, ok := o.(T); ok {
			return references(typed)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("indexing the references of %T: %w", obj, err)
	}
	return nil
}

// Referrers maps an object of a kind to the objects of list's kind that refer to it.
func Referrers(c client.Reader, list client.ObjectList, kind string) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []ctrl.Request {
		return find(ctx, c, list, o.GetNamespace(), To(kind, o.GetName()))
	}
}

// ThroughControllers maps an object of a kind to the objects of list's kind whose Controller refers to it.
func ThroughControllers(c client.Reader, list client.ObjectList, kind string) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []ctrl.Request {
		var out []ctrl.Request
		for _, request := range find(ctx, c, &slinkyv1beta1.ControllerList{}, o.GetNamespace(), To(kind, o.GetName())) {
			out = append(out, find(ctx, c, list, o.GetNamespace(), To("Controller", request.Name))...)
		}
		return out
	}
}

// ThroughController maps an object to the objects of list's kind that refer to the same Controller.
func ThroughController(c client.Reader, list client.ObjectList) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []ctrl.Request {
		var out []ctrl.Request
		for _, request := range ControllerOf(ctx, o) {
			out = append(out, find(ctx, c, list, request.Namespace, To("Controller", request.Name))...)
		}
		return out
	}
}

func find(ctx context.Context, c client.Reader, list client.ObjectList, namespace, ref string) []ctrl.Request {
	found, ok := list.DeepCopyObject().(client.ObjectList)
	if !ok {
		return nil
	}
	if err := c.List(ctx, found, client.InNamespace(namespace), client.MatchingFields{Index: ref}); err != nil {
		log.FromContext(ctx).Error(err, "Could not find what refers to an object", "namespace", namespace, "reference", ref)
		return nil
	}
	var out []ctrl.Request
	for _, name := range namesIn(found) {
		out = append(out, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
	}
	return out
}
func namesIn(list client.ObjectList) []string {
	var names []string
	_ = meta.EachListItem(list, func(o runtime.Object) error {
		if accessor, err := meta.Accessor(o); err == nil {
			names = append(names, accessor.GetName())
		}
		return nil
	})
	return names
}
