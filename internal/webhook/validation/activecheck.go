// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/activecheck/activecheckplan"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
)

// activeCheck refuses cycles of checks, what cannot become a pod, and batch scripts that cannot be submitted.
func (l lookup) activeCheck(ctx context.Context, check *nebiusv1alpha1.ActiveCheck) (Findings, error) {
	var f Findings
	in := activecheckplan.Input{Check: check}
	var err error
	if in.Checks, err = l.checksBeside(ctx, check); err != nil {
		return f, err
	}
	clusters, err := reference.SlurmClusters(ctx, l.live, check.Namespace)
	if err != nil {
		return f, err
	}
	if name := check.Spec.SlurmClusterRefName; !slices.ContainsFunc(clusters, func(c nebiusv1.SlurmCluster) bool { return c.Name == name }) {
		f.Warnings = append(f.Warnings, fmt.Sprintf("SlurmCluster %q does not exist yet; the check does not run before it does", name))
	}
	for _, before := range check.Spec.DependsOn {
		if in.Checks[before] == nil {
			f.Warnings = append(f.Warnings, fmt.Sprintf("ActiveCheck %q does not exist yet; the check does not run before it does", before))
		}
	}
	found, err := l.podTemplate(ctx, check, &in)
	if err != nil {
		return f, err
	}
	if !found {
		f.Warnings = append(f.Warnings, fmt.Sprintf("PodTemplate %q does not exist yet; the check does not run before it does", check.Spec.PodTemplateNameRef))
	}
	out := activecheckplan.Decide(in)
	for i := range out.Problems {
		p := &out.Problems[i]
		// The image may be in a PodTemplate that comes later.
		p.Waiting = p.Waiting || !found && p.Path == activecheckplan.ImagePath
	}
	f.add(out.Output)
	return f, nil
}

// checksBeside returns the checks of the namespace by name, with the new version of the one that is looked at.
func (l lookup) checksBeside(ctx context.Context, check *nebiusv1alpha1.ActiveCheck) (map[string]*nebiusv1alpha1.ActiveCheck, error) {
	var list nebiusv1alpha1.ActiveCheckList
	if err := l.live.List(ctx, &list, client.InNamespace(check.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the ActiveChecks of namespace %s: %w", check.Namespace, err)
	}
	out := map[string]*nebiusv1alpha1.ActiveCheck{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	out[check.Name] = check
	return out, nil
}

// podTemplate reads the PodTemplate that a check names into in. It returns false when none has that name yet.
func (l lookup) podTemplate(ctx context.Context, check *nebiusv1alpha1.ActiveCheck, in *activecheckplan.Input) (found bool, err error) {
	name := check.Spec.PodTemplateNameRef
	if name == "" {
		return true, nil
	}
	template := &corev1.PodTemplate{}
	switch err := l.live.Get(ctx, client.ObjectKey{Namespace: check.Namespace, Name: name}, template); {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading PodTemplate %s/%s: %w", check.Namespace, name, err)
	}
	in.Template = template
	return true, nil
}
