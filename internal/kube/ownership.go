// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/coxswain-hpc/coxswain/internal/problem"
)

// ReasonConflict is the reason of a condition about an object that belongs to somebody else. Like the other reasons here
// it has the value of the constant in api/.
const ReasonConflict = "NameConflict"

// ConflictError is an object that we want to write and that exists and is not ours. It was not touched.
//
// An object is ours when its controller is the owner; or when it has no controller and either carries IntentAnnotation or may be
// adopted. Adopted is what has no controller and at least one label, and all labels that we want it to have with the same values.
// Its owner was deleted with --cascade=orphan, or it was restored from a backup without owner references.
type ConflictError struct {
	// Object is the object that exists.
	Object Ref
	// Owner is the object on whose behalf we wanted to write it.
	Owner Ref
	// Holder is the object's controller; its zero value means that there is none.
	Holder Ref
}

// Error implements error.
func (e *ConflictError) Error() string {
	if e.Holder != (Ref{}) {
		return fmt.Sprintf("%s is controlled by %s, so %s cannot use it; delete it or choose another name", e.Object, e.Holder, e.Owner)
	}
	return fmt.Sprintf("%s exists and was not made for %s; delete it, or add the operator's labels to it to hand it over", e.Object, e.Owner)
}

// As makes the conflict a problem for problem.FromError: it stays until somebody acts.
func (e *ConflictError) As(target any) bool {
	return asProblem(target, ReasonConflict, e.Error())
}

func asProblem(target any, reason, message string) bool {
	p, ok := target.(*problem.Problem)
	if ok {
		*p = problem.Problem{Reason: reason, Message: message}
	}
	return ok
}

// standing is our relation to a live object.
type standing int

const (
	ours standing = iota
	adoptable
	// leaving: the object is being deleted, or will be, because the owner that it names was deleted and made anew.
	leaving
	foreign
)

// standingOf returns how the live object relates to the owner.
func standingOf(owner client.Object, want intent, live client.Object) standing {
	controller := metav1.GetControllerOf(live)
	switch {
	case live.GetDeletionTimestamp() != nil:
		return leaving
	case controller == nil && live.GetAnnotations()[IntentAnnotation] != "":
		return ours
	case controller == nil:
		if looksLikeOurs(want, live) {
			return adoptable
		}
		return foreign
	case controller.UID == owner.GetUID():
		return ours
	case controller.Name == owner.GetName() && controller.Kind == ownerKind(want):
		// Same name, another UID: the garbage collector has not come by yet.
		return leaving
	default:
		return foreign
	}
}

func looksLikeOurs(want intent, live client.Object) bool {
	labels := want.object.GetLabels()
	have := live.GetLabels()
	for key, value := range labels {
		if have[key] != value {
			return false
		}
	}
	return len(labels) > 0
}

func ownerKind(want intent) string {
	for _, reference := range want.object.GetOwnerReferences() {
		return reference.Kind
	}
	return ""
}

// ownerReference is the reference of owner that goes on its objects.
func ownerReference(scheme *runtime.Scheme, owner client.Object, opts options) (metav1.OwnerReference, error) {
	gvk, err := apiutil.GVKForObject(owner, scheme)
	if err != nil {
		return metav1.OwnerReference{}, fmt.Errorf("finding the kind of owner %T: %w", owner, err)
	}
	if owner.GetUID() == "" {
		return metav1.OwnerReference{}, fmt.Errorf("owner %s %s has no UID: it was not read from the server", gvk.Kind, owner.GetName())
	}
	if opts.shared {
		return metav1.OwnerReference{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: owner.GetName(), UID: owner.GetUID()}, nil
	}
	return *metav1.NewControllerRef(owner, gvk), nil
}

// keepSharers adds the plain owner references of the live object to those of a shared one: all owners write under one
// field manager, so that a reference left out would be removed.
func keepSharers(want intent, live client.Object) {
	references := want.object.GetOwnerReferences()
	for _, reference := range live.GetOwnerReferences() {
		if reference.UID != references[0].UID && (reference.Controller == nil || !*reference.Controller) {
			references = append(references, reference)
		}
	}
	want.object.SetOwnerReferences(references)
}

// refOf names a live object of the intent's kind.
func refOf(scheme *runtime.Scheme, obj client.Object) Ref {
	ref := Ref{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	if gvk, err := apiutil.GVKForObject(obj, scheme); err == nil {
		ref.Kind = gvk.Kind
	}
	return ref
}

func holderOf(live client.Object) Ref {
	if c := metav1.GetControllerOf(live); c != nil {
		return Ref{Kind: c.Kind, Namespace: live.GetNamespace(), Name: c.Name}
	}
	return Ref{}
}
