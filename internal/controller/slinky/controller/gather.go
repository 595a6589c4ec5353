// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube/foreignkind"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
)

// facts are what is known about a Controller.
type facts struct {
	slurmctld.Input
	// keys is the condition about the keys of auth/slurm and of tokens.
	keys metav1.Condition
	// problems are what is wrong with what it refers to.
	problems problem.List
	// slurmctlds are the pods, and what Slurm reports of itself.
	slurmctlds slurmctlds
	// slurmctld and slurmdbd are the live StatefulSets; nil when there are none.
	slurmctld, slurmdbd *appsv1.StatefulSet
	absences            absences
	// monitors is whether the cluster has ServiceMonitors that can be used.
	monitors foreignkind.Fit
}

func (r *reconciler) gather(ctx context.Context, c *slinkyv1beta1.Controller) (facts, error) {
	f := facts{Input: slurmctld.Input{Controller: c, Images: r.Images, ClusterDomain: r.ClusterDomain}}
	accountingErr := r.accounting(ctx, c, &f.Input)
	keysErr := r.readKeys(ctx, &f)
	var err error
	if f.slurmctld, err = r.statefulSet(ctx, c.Key()); err != nil {
		return f, err
	}
	f.problems, err = problem.FromError(errors.Join(keysErr, accountingErr, r.files(ctx, c, &f.Input), r.nodeSets(ctx, c, &f.Input), r.sharedClaim(ctx, c),
		r.live(ctx, c, f.slurmctld, &f.Input)))
	if err != nil {
		return f, err
	}
	if a := f.Accounting; a != nil && !a.Spec.External {
		if f.slurmdbd, err = r.statefulSet(ctx, a.Key()); err != nil {
			return f, err
		}
	}
	f.monitors, err = r.definitions.Fit(ctx, r.Client.RESTMapper(), slurmctld.ServiceMonitors())
	if err != nil {
		return f, err
	}
	f.absences = r.absent(ctx, c)
	f.slurmctlds, err = r.running(ctx, c)
	return f, err
}

// readKeys reads the keys and returns the result as a condition in f.
func (r *reconciler) readKeys(ctx context.Context, f *facts) error {
	c := f.Controller
	seal, digest, err := r.SlurmKey(ctx, c.Namespace, *c.AuthSlurmRef(), "spec.slurmKeyRef")
	f.SlurmKeyDigest = digest
	if err == nil && !c.Spec.External {
		f.JwtKeyDigest, err = r.JwtDigest(ctx, c, c.Spec.JwksKeyRef)
	}
	if err == nil && f.Accounting != nil {
		err = r.sameKey(ctx, c, f.Accounting)
	}
	if err == nil && !c.Spec.External {
		f.MungeKeyDigest, err = r.MungeDigest(ctx, c.Namespace, c.Spec.Munge)
	}
	f.keys = reference.KeysMissing(reference.KeysPresent(c), err)
	if err == nil && !c.Spec.External {
		f.SSSDDigest, err = r.SSSDDigest(ctx, c, seal, "spec.sssd")
	}
	return err
}

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
