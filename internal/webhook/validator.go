// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render"
)

// findings are what a look at one object brings up: mistakes refuse it, warnings go along with the answer.
type findings struct {
	mistakes problem.List
	warnings []string
}

// add takes the problems of a rendering. One that heals by itself is a warning, and so is a field without effect.
func (f *findings) add(out render.Output) {
	f.problems(out.Problems)
	for _, path := range out.Ignored {
		f.warnings = append(f.warnings, path+" has no effect in this version")
	}
}

func (f *findings) problems(list problem.List) {
	for _, p := range list {
		if p.Waiting {
			f.warnings = append(f.warnings, p.Error())
		} else {
			f.mistakes = append(f.mistakes, p)
		}
	}
}

// finder looks at one object. The error says what did not answer, not what is wrong with the object.
type finder[T client.Object] func(ctx context.Context, obj T) (findings, error)

// validator refuses objects of one kind for their mistakes.
type validator[T client.Object] struct {
	kind    schema.GroupKind
	options Options
	find    finder[T]
}

// ValidateCreate looks at a new object.
func (v *validator[T]) ValidateCreate(ctx context.Context, obj T) (admission.Warnings, error) {
	if v.exempt(obj) {
		return nil, nil
	}
	found, err := v.look(ctx, obj)
	if err != nil {
		return unchecked(ctx, err), nil
	}
	return found.warnings, v.refusal(obj, found.mistakes)
}

// ValidateUpdate looks at a changed object. Mistakes that it had before do not refuse the change. Whoever mends one of two is on
// the right way, and a newer version's rules must not lock up objects that an older one took.
func (v *validator[T]) ValidateUpdate(ctx context.Context, old, obj T) (admission.Warnings, error) {
	if v.exempt(obj) || old.GetGeneration() == obj.GetGeneration() {
		return nil, nil
	}
	found, err := v.look(ctx, obj)
	if err != nil {
		return unchecked(ctx, err), nil
	}
	if len(found.mistakes) > 0 {
		before, err := v.look(ctx, old)
		if err != nil {
			return unchecked(ctx, err), nil
		}
		found.mistakes = slices.DeleteFunc(found.mistakes, func(p problem.Problem) bool { return slices.Contains(before.mistakes, p) })
	}
	return found.warnings, v.refusal(obj, found.mistakes)
}

// look finds the mistakes of an object as the operator reads it, without what is empty in it.
func (v *validator[T]) look(ctx context.Context, obj T) (findings, error) {
	if read, ok := obj.DeepCopyObject().(T); ok {
		obj = read
	}
	if o, ok := any(obj).(interface{ DropEmpty() }); ok {
		o.DropEmpty()
	}
	return v.find(ctx, obj)
}

// ValidateDelete is not registered: everything may be deleted.
func (*validator[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) { return nil, nil }

// exempt says whether an object is not to be looked at. Either it is on its way out and has only finalizers to lose, or it was
// composed from a SlurmCluster, whose user is told in the words of his own object.
func (v *validator[T]) exempt(obj T) bool {
	holder := metav1.GetControllerOf(obj)
	return obj.GetDeletionTimestamp() != nil || !v.options.covers(obj.GetNamespace()) ||
		holder != nil && holder.Kind == "SlurmCluster" && holder.APIVersion == nebiusv1.GroupVersion.String()
}

// refusal is the error of the API server for an invalid object, with one line for each mistake; nil without mistakes. It
// repeats no values, which may be long and are before the user's eyes anyway.
func (v *validator[T]) refusal(obj T, mistakes problem.List) error {
	if len(mistakes) == 0 {
		return nil
	}
	var list field.ErrorList
	for _, p := range mistakes.Sorted() {
		list = append(list, &field.Error{Type: field.ErrorTypeInvalid, Field: p.Path, BadValue: field.OmitValueType{}, Detail: p.Message})
	}
	return apierrors.NewInvalid(v.kind, obj.GetName(), list)
}

// unchecked admits what could not be looked at. The operator will look again, and put what it finds into a condition.
func unchecked(ctx context.Context, err error) admission.Warnings {
	log.FromContext(ctx).Error(err, "Could not look at an object, and admitted it")
	return admission.Warnings{fmt.Sprintf("not checked before it was stored, see the object's conditions: %v", err)}
}
