// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package notserved tells the owners of objects that this version stores and does not act on: by condition Ready False with
// reason NotServed and by an event. Manifests of the predecessor have such objects, and whoever applies them must not wait
// for what never comes. A kind that gets a controller of its own leaves the list here.
package notserved

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
)

// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=activechecks;jailedconfigs;nodeconfigurators;nodesetpowerstates,verbs=list;watch
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=activechecks/status;jailedconfigs/status;nodeconfigurators/status;nodesetpowerstates/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Setup registers a controller for each of the kinds.
func Setup(mgr ctrl.Manager, base reconcile.Base) error {
	base.Concurrency = 1
	for name, make := range map[string]func() reconcile.Object{
		"ActiveCheck":       func() reconcile.Object { return &nebiusv1alpha1.ActiveCheck{} },
		"JailedConfig":      func() reconcile.Object { return &nebiusv1alpha1.JailedConfig{} },
		"NodeConfigurator":  func() reconcile.Object { return &nebiusv1alpha1.NodeConfigurator{} },
		"NodeSetPowerState": func() reconcile.Object { return &nebiusv1alpha1.NodeSetPowerState{} },
	} {
		kind := &reconcile.Kind[reconcile.Object, string, *reconcile.Plan, struct{}]{
			Base:   &base,
			New:    make,
			Gather: func(context.Context, reconcile.Object) (string, error) { return name, nil },
			Decide: decide,
			Report: func(reconcile.Object, reconcile.Outcome[string, *reconcile.Plan, struct{}]) reconcile.Report {
				return reconcile.Report{}
			},
		}
		if err := kind.Setup(mgr, reconcile.Watches{}); err != nil {
			return err
		}
	}
	return nil
}

// decide does nothing for an object of a kind, and says so.
func decide(kind string) *reconcile.Plan {
	var p reconcile.Plan
	p.Problems = problem.List{problem.Errorf("spec", nebiusv1alpha1.ReasonNotServed, "this version stores objects of kind %s and does not act on them", kind)}
	return &p
}
