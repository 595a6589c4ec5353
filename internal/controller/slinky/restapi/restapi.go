// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restapi reconciles RestApis: slurmrestd.
package restapi

import (
	"context"
	"fmt"

	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmrestd"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/render"
)

// +kubebuilder:rbac:groups=slinky.slurm.net,resources=restapis;controllers;loginsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=restapis/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch;delete

type reconciler struct {
	reconcile.Base
	// operatorNamespace is the namespace of the operator's own pods; empty outside of a cluster.
	operatorNamespace string
}

// Index adds the index by which RestApis are found by what they refer to.
func Index(ctx context.Context, mgr ctrl.Manager) error {
	return reference.AddIndex(ctx, mgr, &slinkyv1beta1.RestApi{}, references)
}

// Setup registers the controller of RestApis. operatorNamespace is the namespace of the operator's own pods, which must
// reach slurmrestd; empty when they are in none.
func Setup(mgr ctrl.Manager, base reconcile.Base, operatorNamespace string) error {
	r := &reconciler{Base: base, operatorNamespace: operatorNamespace}
	kind := &reconcile.Kind[*slinkyv1beta1.RestApi, facts, *reconcile.Plan, observation]{
		Base:    &r.Base,
		New:     func() *slinkyv1beta1.RestApi { return &slinkyv1beta1.RestApi{} },
		Effect:  render.Effect,
		Gather:  r.gather,
		Decide:  decide,
		Observe: r.observe,
		Report:  report,
		Prunes:  Prunes(),
	}
	list := &slinkyv1beta1.RestApiList{}
	return kind.Setup(mgr, reconcile.Watches{
		List:     list,
		Owns:     Prunes(),
		RefersTo: []client.Object{&slinkyv1beta1.Controller{}},
		BySecret: reference.ThroughControllers(r.Client, list, "Secret"),
		// The certificates of SSSD.
		ByConfigMap: reference.ThroughControllers(r.Client, list, "ConfigMap"),
		Other: func(b *builder.Builder) {
			b.Watches(&slinkyv1beta1.LoginSet{}, handler.EnqueueRequestsFromMapFunc(reference.ThroughController(r.Client, list)), builder.WithPredicates(listsChange()))
		},
	})
}

// Prunes returns the kinds of objects that are deleted when they are no longer rendered. Each needs the index of
// kube.SetupIndexes.
func Prunes() []client.Object {
	return []client.Object{&corev1.Service{}, &appsv1.Deployment{}, &networkingv1.NetworkPolicy{}}
}

func references(a *slinkyv1beta1.RestApi) []string {
	return []string{reference.To("Controller", a.Spec.ControllerRef.Name)}
}

// facts are what is known about a RestApi.
type facts struct {
	slurmrestd.Input
	// problems are what is wrong with what it refers to.
	problems problem.List
}

func (r *reconciler) gather(ctx context.Context, a *slinkyv1beta1.RestApi) (facts, error) {
	f := facts{Input: slurmrestd.Input{RestAPI: a, Images: r.Images, OperatorNamespace: r.operatorNamespace}}
	var err error
	f.Controller, err = r.Controller(ctx, a.Namespace, a.Spec.ControllerRef)
	if err == nil {
		var seal []byte
		seal, f.SlurmKeyDigest, err = r.SlurmKey(ctx, a.Namespace, *f.Controller.AuthSlurmRef(), "spec.controllerRef")
		if err == nil {
			f.SSSDDigest, err = r.SSSDDigest(ctx, f.Controller, seal, "spec.controllerRef")
		}
	}
	if err == nil {
		f.ConnectionDigest, err = r.connection(ctx, f.Controller)
	}
	if f.problems, err = problem.FromError(err); err != nil || len(f.problems) > 0 {
		return f, err
	}
	f.LoginSets, err = r.loginSets(ctx, f.Controller)
	return f, err
}

func decide(f facts) *reconcile.Plan {
	if len(f.problems) > 0 {
		return &reconcile.Plan{Output: render.Output{Problems: f.problems}}
	}
	return &reconcile.Plan{Output: slurmrestd.Render(f.Input)}
}

// connection returns the digest of the slurm.conf that the Controller has rendered, which the pods mount.
func (r *reconciler) connection(ctx context.Context, c *slinkyv1beta1.Controller) (string, error) {
	var config corev1.ConfigMap
	key := types.NamespacedName{Namespace: c.Namespace, Name: c.ConfigName()}
	if err := r.Live.Get(ctx, key, &config); err != nil {
		if apierrors.IsNotFound(err) {
			return "", problem.Waitingf("spec.controllerRef", slinkyv1beta1.ReasonControllerNotReady, "Controller %s has no configuration yet", c.Name)
		}
		return "", fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	return slurmrestd.ConnectionDigest(config.Data["slurm.conf"]), nil
}

// observation is what runs of a RestApi.
type observation struct {
	part     kube.Part
	workload reconcile.Workload
}

func (r *reconciler) observe(ctx context.Context, a *slinkyv1beta1.RestApi, _ facts, _ *reconcile.Plan, seen *observation) (err error) {
	seen.part, seen.workload, err = r.ObserveWorkload(ctx, a.Namespace, a.Key().Name, &appsv1.Deployment{}, "slurmrestd", a.Replicas())
	return err
}

func report(a *slinkyv1beta1.RestApi, o reconcile.Outcome[facts, *reconcile.Plan, observation]) reconcile.Report {
	a.Status.ObservedGeneration = a.Generation
	a.Status.Replicas, a.Status.ReadyReplicas = o.Seen.workload.Replicas, o.Seen.workload.Ready
	return reconcile.Report{Parts: []kube.Part{o.Seen.part}}
}
