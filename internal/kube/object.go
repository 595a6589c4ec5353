// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Ref names an object for people and programs: in errors, results and events.
type Ref struct {
	// Kind is the object's kind without its group.
	Kind string
	// Namespace is where it lives.
	Namespace string
	// Name is its name.
	Name string
}

// String is the kind with namespace and name, such as "StatefulSet team-a/slurm-controller".
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// wrapped is a desired object with the caller's choices for it.
type wrapped struct {
	client.Object
	options options
}

// options are the caller's choices for one desired object.
type options struct {
	recreate bool
	shared   bool
}

// Recreate marks a desired object that may be deleted and made anew when a change is not possible in place. The dependents of a
// StatefulSet (its pods) stay and are adopted by the new one; dependents of any other kind are deleted with it. PersistentVolumeClaims
// and Secrets labelled with KeyLabel are never recreated, marked or not.
func Recreate(obj client.Object) client.Object {
	w := wrap(obj)
	w.options.recreate = true
	return w
}

// Shared marks a desired object that several owners want in the same form. It gets a plain owner reference per owner instead of a
// controller reference, and is deleted with its last owner. Prune never deletes it.
func Shared(obj client.Object) client.Object {
	w := wrap(obj)
	w.options.shared = true
	return w
}

func wrap(obj client.Object) wrapped {
	if w, ok := obj.(wrapped); ok {
		return w
	}
	return wrapped{Object: obj}
}

func unwrap(obj client.Object) (client.Object, options) {
	w := wrap(obj)
	return w.Object, w.options
}

// newOf returns an empty object of the same kind, to read into.
func newOf(obj client.Object) client.Object {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		empty := &unstructured.Unstructured{}
		empty.SetGroupVersionKind(u.GroupVersionKind())
		return empty
	}
	empty, _ := reflect.TypeAssert[client.Object](reflect.New(reflect.TypeOf(obj).Elem())) // the type of obj, which is one
	return empty
}
