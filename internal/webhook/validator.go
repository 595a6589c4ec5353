// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
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
	"github.com/coxswain-hpc/coxswain/internal/webhook/validation"
)

// validator refuses objects of one kind for their mistakes.
type validator[T client.Object] struct {
	kind    schema.GroupKind
	options Options
	live    client.Reader
}

// ValidateCreate looks at a new object.
func (v *validator[T]) ValidateCreate(ctx context.Context, obj T) (admission.Warnings, error) {
	if v.exempt(obj) {
		return nil, nil
	}
	found, err := validation.Find(ctx, v.live, obj, "")
	if err != nil {
		return unchecked(ctx, err), nil
	}
	return found.Warnings, v.refusal(obj, found.Mistakes)
}

// ValidateUpdate looks at a changed object. Mistakes that it had before do not refuse the change. A user who mends one of two is on
// the right way, and a newer version's rules must not lock up objects that an older one took.
func (v *validator[T]) ValidateUpdate(ctx context.Context, old, obj T) (admission.Warnings, error) {
	if v.exempt(obj) {
		return nil, nil
	}
	jobs := v.jobs(ctx, old, obj)
	if old.GetGeneration() == obj.GetGeneration() {
		return jobs, nil
	}
	found, err := validation.Find(ctx, v.live, obj, "")
	if err != nil {
		return unchecked(ctx, err), nil
	}
	if len(found.Mistakes) > 0 {
		before, err := validation.Find(ctx, v.live, old, "")
		if err != nil {
			return unchecked(ctx, err), nil
		}
		found.Mistakes = slices.DeleteFunc(found.Mistakes, func(p problem.Problem) bool { return slices.Contains(before.Mistakes, p) })
	}
	if len(found.Mistakes) > 0 { // and nothing happens to jobs
		return found.Warnings, v.refusal(obj, found.Mistakes)
	}
	return append(found.Warnings, jobs...), nil
}

// jobs are warnings of what a change does to jobs.
func (v *validator[T]) jobs(ctx context.Context, old, obj T) admission.Warnings {
	warnings, err := validation.EditWarnings(ctx, v.live, old, obj)
	return ofJobs(ctx, warnings, err)
}

// ofJobs are warnings about jobs, and what could not be found out of them. Nothing is refused because of that.
func ofJobs(ctx context.Context, warnings admission.Warnings, err error) admission.Warnings {
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not find out what a change does to jobs")
		warnings = append(warnings, fmt.Sprintf("what this change does to jobs is not known: %v", err))
	}
	return warnings
}

// ValidateDelete warns of what a deletion does to jobs: everything may be deleted. It is registered for NodeSets.
func (v *validator[T]) ValidateDelete(ctx context.Context, obj T) (admission.Warnings, error) {
	if v.exempt(obj) {
		return nil, nil
	}
	warnings, err := validation.DeletionWarnings(ctx, v.live, obj, propagation(ctx))
	return ofJobs(ctx, warnings, err), nil
}

// propagation returns what a deletion wants for the pods of the object; empty when the request does not have it.
func propagation(ctx context.Context) metav1.DeletionPropagation {
	var options metav1.DeleteOptions
	request, err := admission.RequestFromContext(ctx)
	if err != nil || json.Unmarshal(request.Options.Raw, &options) != nil || options.PropagationPolicy == nil {
		return ""
	}
	return *options.PropagationPolicy
}

// exempt reports whether an object is not to be looked at. Either it is on its way out and has only finalizers to lose, or it was
// composed from a SlurmCluster, whose user gets the message about the SlurmCluster.
func (v *validator[T]) exempt(obj T) bool {
	holder := metav1.GetControllerOf(obj)
	return obj.GetDeletionTimestamp() != nil || !v.options.covers(obj.GetNamespace()) ||
		holder != nil && holder.Kind == "SlurmCluster" && holder.APIVersion == nebiusv1.GroupVersion.String()
}

// refusal returns the error of the API server for an invalid object, with one line for each mistake; nil without mistakes. It
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
	return admission.Warnings{fmt.Sprintf("stored without a check; see the object's conditions: %v", err)}
}
