// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restapi reconciles RestApis: slurmrestd.
package restapi

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	render "github.com/coxswain-hpc/coxswain/internal/render/restapi"
)

// +kubebuilder:rbac:groups=slinky.slurm.net,resources=restapis;controllers,verbs=get;list;watch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=restapis/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch;delete

type reconciler struct {
	reconcile.Base
	// operatorNamespace is that of the operator's own pods; empty outside of a cluster.
	operatorNamespace string
}

// Index adds the index by which RestApis are found by what they refer to.
func Index(ctx context.Context, mgr ctrl.Manager) error {
	return reconcile.IndexReferences(ctx, mgr, &slinkyv1beta1.RestApi{}, references)
}

// Setup registers the controller of RestApis. operatorNamespace is the namespace of the operator's own pods, which must
// reach slurmrestd; empty when they are in none.
func Setup(mgr ctrl.Manager, base reconcile.Base, operatorNamespace string) error {
	r := &reconciler{Base: base, operatorNamespace: operatorNamespace}
	generic := &reconcile.Reconciler[*slinkyv1beta1.RestApi]{
		Base:    base,
		New:     func() *slinkyv1beta1.RestApi { return &slinkyv1beta1.RestApi{} },
		Decide:  r.decide,
		Observe: r.observe,
		Prunes:  Prunes(),
	}
	return generic.Setup(mgr, &slinkyv1beta1.RestApiList{}, reconcile.Watches{
		Owns:             Prunes(),
		Components:       []client.Object{&slinkyv1beta1.Controller{}},
		KeysOfController: true,
	})
}

// Prunes are the kinds of objects that are deleted when they are no longer rendered. Each needs the index of
// kube.SetupIndexes.
func Prunes() []client.Object {
	return []client.Object{&corev1.Service{}, &appsv1.Deployment{}, &networkingv1.NetworkPolicy{}}
}

func references(a *slinkyv1beta1.RestApi) []string {
	return []string{reconcile.Ref("Controller", a.Spec.ControllerRef.Name)}
}

func (r *reconciler) decide(ctx context.Context, a *slinkyv1beta1.RestApi) (reconcile.Plan, error) {
	a.Status.ObservedGeneration = a.Generation
	in := render.Input{RestAPI: a, Images: r.Images, OperatorNamespace: r.operatorNamespace}
	var err error
	in.Controller, err = r.Controller(ctx, a.Namespace, a.Spec.ControllerRef)
	if err == nil {
		_, in.SlurmKeyDigest, err = r.SlurmKey(ctx, a.Namespace, *in.Controller.AuthSlurmRef(), "spec.controllerRef")
	}
	if err == nil {
		in.ConnectionDigest, err = r.connection(ctx, in.Controller)
	}
	problems, err := problem.FromError(err)
	if err != nil || len(problems) > 0 {
		return reconcile.Plan{Output: reconcile.Failed(problems)}, err
	}
	return reconcile.Plan{Output: render.Render(in)}, nil
}

// connection is the digest of the slurm.conf that the Controller has rendered, which the pods mount.
func (r *reconciler) connection(ctx context.Context, c *slinkyv1beta1.Controller) (string, error) {
	var config corev1.ConfigMap
	key := types.NamespacedName{Namespace: c.Namespace, Name: c.ConfigName()}
	if err := r.Live.Get(ctx, key, &config); err != nil {
		if apierrors.IsNotFound(err) {
			return "", problem.Waitingf("spec.controllerRef", slinkyv1beta1.ReasonControllerNotReady, "Controller %s has no configuration yet", c.Name)
		}
		return "", fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	return render.ConnectionDigest(config.Data["slurm.conf"]), nil
}

func (r *reconciler) observe(ctx context.Context, a *slinkyv1beta1.RestApi, plan *reconcile.Plan) error {
	part, workload, err := r.ObserveWorkload(ctx, a.Namespace, a.Key().Name, &appsv1.Deployment{}, "slurmrestd")
	if err != nil {
		return err
	}
	a.Status.Replicas, a.Status.ReadyReplicas = workload.Replicas, workload.Ready
	plan.Parts = append(plan.Parts, part)
	return nil
}
