// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render"
	renderaccounting "github.com/coxswain-hpc/coxswain/internal/render/accounting"
)

// upgrade is a slurmctld that is about to get another image, and the slurmdbd that it reports to.
type upgrade struct {
	// slurmctld is the live StatefulSet, nil when there is none, and image the one that it is to have.
	slurmctld *appsv1.StatefulSet
	image     string
	// accounting is nil when there is no slurmdbd here. slurmdbd is its live StatefulSet, nil when there is none, and
	// slurmdbdImage the image that it is to have.
	accounting    *slinkyv1beta1.Accounting
	slurmdbd      *appsv1.StatefulSet
	slurmdbdImage string
}

// wait returns a problem while slurmdbd has not got its own image yet: slurmdbd must not be older than slurmctld
// (https://slurm.schedmd.com/upgrades.html#upgrade_order). It need not be ready, since slurmctld can do without it for a
// while, and converting a large database takes hours.
func (u upgrade) wait() error {
	if u.slurmctld == nil || imageOf(u.slurmctld) == u.image || u.accounting == nil || u.slurmdbd == nil {
		return nil
	}
	status := u.slurmdbd.Status
	if imageOf(u.slurmdbd) == u.slurmdbdImage && status.ObservedGeneration >= u.slurmdbd.Generation && status.UpdatedReplicas > 0 {
		return nil
	}
	return problem.Waitingf("spec.accountingRef", slinkyv1beta1.ReasonWaiting,
		"slurmctld gets its new image %s when slurmdbd of Accounting %s has %s, since slurmdbd must not be older", u.image, u.accounting.Name, u.slurmdbdImage)
}

// imageOf is the image of a StatefulSet's main container.
func imageOf(s *appsv1.StatefulSet) string {
	if containers := s.Spec.Template.Spec.Containers; len(containers) > 0 {
		return containers[0].Image
	}
	return ""
}

// inOrder returns a problem when what is rendered has to wait for slurmdbd.
func (r *reconciler) inOrder(ctx context.Context, c *slinkyv1beta1.Controller, a *slinkyv1beta1.Accounting, objects []render.Object) error {
	if a == nil || a.Spec.External {
		return nil
	}
	u := upgrade{accounting: a, slurmdbdImage: renderaccounting.Image(a, r.Images)}
	for _, o := range objects {
		if s, ok := o.(*appsv1.StatefulSet); ok && s.Name == c.Key().Name {
			u.image = imageOf(s)
		}
	}
	if u.image == "" {
		return nil
	}
	var err error
	if u.slurmctld, err = r.statefulSet(ctx, c.Key()); err != nil {
		return err
	}
	if u.slurmdbd, err = r.statefulSet(ctx, a.Key()); err != nil {
		return err
	}
	return u.wait()
}

// statefulSet reads a StatefulSet of ours, or nil.
func (r *reconciler) statefulSet(ctx context.Context, key types.NamespacedName) (*appsv1.StatefulSet, error) {
	var s appsv1.StatefulSet
	if err := r.Client.Get(ctx, key, &s); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // none is an answer
		}
		return nil, fmt.Errorf("reading StatefulSet %s: %w", key, err)
	}
	return &s, nil
}
