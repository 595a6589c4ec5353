// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	appsv1 "k8s.io/api/apps/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmdbd"
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
// (https://slurm.schedmd.com/upgrades.html#upgrade_order). It need not be ready, since slurmctld can do without it for a while, and
// converting a large database takes hours. A suspended slurmdbd begins with its new image.
func (u upgrade) wait() error {
	if u.slurmctld == nil || imageOf(u.slurmctld) == u.image || u.accounting == nil || u.slurmdbd == nil || u.accounting.Suspended() {
		return nil
	}
	status := u.slurmdbd.Status
	if imageOf(u.slurmdbd) == u.slurmdbdImage && status.ObservedGeneration >= u.slurmdbd.Generation && status.UpdatedReplicas > 0 {
		return nil
	}
	return problem.Waitingf("spec.accountingRef", slinkyv1beta1.ReasonWaiting,
		"slurmctld gets its new image %s after slurmdbd of Accounting %s has %s, because slurmdbd must not be older than slurmctld", u.image, u.accounting.Name, u.slurmdbdImage)
}

// imageOf returns the image of a StatefulSet's main container.
func imageOf(s *appsv1.StatefulSet) string {
	if containers := s.Spec.Template.Spec.Containers; len(containers) > 0 {
		return containers[0].Image
	}
	return ""
}

// upgrade returns what is known about the order, once the objects are rendered.
func (f facts) upgrade(objects []render.Object) upgrade {
	a := f.Accounting
	if a == nil || a.Spec.External {
		return upgrade{}
	}
	u := upgrade{accounting: a, slurmdbd: f.slurmdbd, slurmdbdImage: slurmdbd.Image(a, f.Images)}
	for _, o := range objects {
		if s, ok := o.(*appsv1.StatefulSet); ok && s.Name == f.Controller.Key().Name {
			u.slurmctld, u.image = f.slurmctld, imageOf(s)
		}
	}
	return u
}
