// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package notserved tells the owners of objects that this version stores and does not act on: by condition Ready False with
// reason NotServed and by an event. Manifests of the predecessor have such objects, and whoever applies them must not wait
// for what never comes. A kind that gets a controller of its own leaves the list here.
package notserved

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
)

// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=activechecks;jailedconfigs;nodeconfigurators;nodesetpowerstates,verbs=list;watch
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=activechecks/status;jailedconfigs/status;nodeconfigurators/status;nodesetpowerstates/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// object is an object of a kind that is not served.
type object interface {
	client.Object
	GetConditions() []metav1.Condition
	SetConditions(conditions []metav1.Condition)
}

// Setup registers a controller for each of the kinds.
func Setup(mgr ctrl.Manager, base reconcile.Base) error {
	for name, make := range map[string]func() object{
		"ActiveCheck":       func() object { return &nebiusv1alpha1.ActiveCheck{} },
		"JailedConfig":      func() object { return &nebiusv1alpha1.JailedConfig{} },
		"NodeConfigurator":  func() object { return &nebiusv1alpha1.NodeConfigurator{} },
		"NodeSetPowerState": func() object { return &nebiusv1alpha1.NodeSetPowerState{} },
	} {
		err := ctrl.NewControllerManagedBy(mgr).
			Named(name).
			For(make()).
			WithOptions(controller.Options{MaxConcurrentReconciles: 1}).
			Complete(&reconciler{Base: base, kind: name, make: make})
		if err != nil {
			return fmt.Errorf("setting up what tells that %s is not served: %w", name, err)
		}
	}
	return nil
}

type reconciler struct {
	reconcile.Base
	kind string
	make func() object
}

// Reconcile tells of one object.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj := r.make()
	if err := r.Client.Get(ctx, req.NamespacedName, obj); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if obj.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, nil
	}
	if behind, err := r.Applier.Behind(ctx, obj); err != nil || behind {
		return ctrl.Result{}, err
	}
	before, _ := obj.DeepCopyObject().(client.Object)
	conditions := obj.GetConditions()
	kube.Report(r.Recorder, obj, &conditions, kube.Summary{
		Generation: obj.GetGeneration(), Now: r.Clock.Now(),
		Problems: problem.List{problem.Errorf("spec", nebiusv1alpha1.ReasonNotServed, "this version stores objects of kind %s and does not act on them", r.kind)},
	})
	obj.SetConditions(conditions)
	_, err := r.Applier.PatchStatus(ctx, before, obj)
	if apierrors.IsConflict(err) {
		return ctrl.Result{}, nil // somebody has changed the object, of which an event is on its way
	}
	return ctrl.Result{}, err
}
