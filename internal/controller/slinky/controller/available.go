// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// active returns the name of the slurmctld pod that is in charge: the first in slurm.conf's order that answers, as every client of Slurm
// finds it. While none answers, or cannot be asked, it stays as it was, and is the first at the beginning. It is empty for a slurmctld
// without backups.
func active(c *slinkyv1beta1.Controller, s slurmctlds) string {
	if c.Replicas() < 2 {
		return ""
	}
	for _, answer := range s.daemons.Controllers {
		if answer.Responding && slices.ContainsFunc(s.pods, func(p corev1.Pod) bool { return p.Name == answer.Hostname }) {
			return answer.Hostname
		}
	}
	for _, p := range s.pods {
		if p.Labels[slinkyv1beta1.LabelControllerActive] == "true" {
			return p.Name
		}
	}
	return c.PodName(0)
}

// suspended is why a slurmctld does not answer.
const suspended = "spec.suspend is true: slurmctld is stopped"

// highlyAvailable reports whether a backup could take over.
func highlyAvailable(of *slinkyv1beta1.Controller, s slurmctlds) metav1.Condition {
	c := metav1.Condition{Type: slinkyv1beta1.ConditionHighlyAvailable, Status: metav1.ConditionUnknown, Reason: slinkyv1beta1.ReasonNotAsked}
	switch {
	case of.Suspended():
		c.Message = suspended
		return c
	case !s.connected:
		c.Message = "there is no RestApi, so the slurmctlds cannot be asked"
		return c
	case s.daemons.Controllers == nil:
		c.Message = s.daemons.Why
		return c
	}
	var up, away []string
	for _, answer := range s.daemons.Controllers {
		if answer.Responding {
			up = append(up, answer.Hostname)
		} else {
			away = append(away, describe(answer))
		}
	}
	c.Status, c.Reason, c.Message = metav1.ConditionTrue, slinkyv1beta1.ReasonBackupReady, strings.Join(up, " and ")+" answer"
	if len(up) < 2 {
		c.Status, c.Reason = metav1.ConditionFalse, slinkyv1beta1.ReasonBackupMissing
		c.Message = fmt.Sprintf("%d of %d slurmctlds answer", len(up), len(up)+len(away))
	}
	if len(away) > 0 {
		c.Message += "; not " + strings.Join(away, ", ")
	}
	return c
}

func describe(c rest.Controller) string {
	if c.Status == "" {
		return c.Hostname
	}
	return c.Hostname + " (" + c.Status + ")"
}

// sharedClaim checks that all slurmctlds can have the claim at the same time.
func (r *reconciler) sharedClaim(ctx context.Context, c *slinkyv1beta1.Controller) error {
	if c.Replicas() < 2 {
		return nil
	}
	var claim corev1.PersistentVolumeClaim
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: c.ExistingClaim()}, &claim)
	switch {
	case apierrors.IsNotFound(err):
		return problem.Waitingf(slurmctld.ExistingClaimPath, slinkyv1beta1.ReasonReferenceNotFound, "PersistentVolumeClaim %s does not exist; create it with access mode ReadWriteMany", c.ExistingClaim())
	case err != nil:
		return fmt.Errorf("reading PersistentVolumeClaim %s/%s: %w", c.Namespace, c.ExistingClaim(), err)
	}
	return slurmctld.CheckSharedClaim(&claim)
}
