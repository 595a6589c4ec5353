// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package slurmcaches keeps one Slurm cache for each Controller that has a RestApi: it sets in the registry of Slurm caches where slurmrestd is
// and with which key to sign tokens. The state of a Slurm cache is in two conditions of the Controller, which are all that is written here:
// SlurmReachable and DestructiveActionsPaused.
package slurmcaches

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/reconcile/perkey"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	events "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
)

// slurmUser is the user of the operator: draining nodes takes SlurmUser's or root's rights.
const slurmUser = "slurm"

type reconciler struct {
	reconcile.Base
	caches *slurmcache.Registry
	// endpoint replaces the endpoint of every RestApi; for a manager that runs outside the cluster.
	endpoint string
	issuers  perkey.Memory[slurmcache.Key, issuers]
}

// issuers are the token issuers of a cluster and the key that they sign with, so that an unchanged key keeps them.
type issuers struct {
	key []byte
	// slurm signs for slurmUser, checks for slurmcache.ChecksUser.
	slurm, checks token.Issuer
}

// Setup registers the controller. endpoint, when it is not empty, is asked instead of any RestApi's Service.
func Setup(mgr ctrl.Manager, base reconcile.Base, caches *slurmcache.Registry, endpoint string) error {
	r := &reconciler{Base: base, caches: caches, endpoint: endpoint}
	b := ctrl.NewControllerManagedBy(mgr).
		Named("slurmcaches").
		For(&slinkyv1beta1.Controller{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, turnsReady()))).
		Watches(&slinkyv1beta1.RestApi{}, handler.EnqueueRequestsFromMapFunc(reference.ControllerOf),
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, turnsReady()))).
		WatchesRawSource(reconcile.SlurmChanges(r.caches, wake)).
		WithOptions(controller.Options{MaxConcurrentReconciles: base.Concurrency})
	base.WatchSecrets(b, &slinkyv1beta1.ControllerList{})
	if err := b.Complete(base.Traced("slurmcaches", &slinkyv1beta1.Controller{}, r)); err != nil {
		return fmt.Errorf("setting up the controller of Slurm caches: %w", err)
	}
	return nil
}

// turnsReady lets through a Controller or a RestApi that has just become ready: a Slurm cache that failed so far need not wait any longer.
func turnsReady() predicate.Predicate {
	ready := func(o client.Object) bool {
		var conditions []metav1.Condition
		switch o := o.(type) {
		case *slinkyv1beta1.Controller:
			conditions = o.Status.Conditions
		case *slinkyv1beta1.RestApi:
			conditions = o.Status.Conditions
		}
		return meta.IsStatusConditionTrue(conditions, slinkyv1beta1.ConditionReady)
	}
	return predicate.Funcs{UpdateFunc: func(e events.UpdateEvent) bool { return !ready(e.ObjectOld) && ready(e.ObjectNew) }}
}

// Reconcile makes the Slurm cache of one Controller follow its RestApi and its key, and reports on it.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	key := slurmcache.Key{Namespace: req.Namespace, Name: req.Name}
	c := &slinkyv1beta1.Controller{}
	if err := r.Client.Get(ctx, req.NamespacedName, c); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.forget(key)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading Controller %s: %w", req, err)
	}
	if c.DeletionTimestamp != nil {
		r.forget(key)
		return ctrl.Result{}, nil
	}
	f, err := r.follow(ctx, key, c)
	if err != nil {
		return ctrl.Result{}, err
	}
	return r.report(ctx, c, f)
}

// follow sets the Slurm cache as the Controller, its RestApi and its key ask for, and returns its state.
func (r *reconciler) follow(ctx context.Context, key slurmcache.Key, c *slinkyv1beta1.Controller) (facts, error) {
	f := facts{Now: r.Clock.Now(), Last: meta.FindStatusCondition(c.Status.Conditions, slinkyv1beta1.ConditionSlurmReachable)}
	if c.Suspended() {
		r.forget(key)
		f.Missing = [2]string{slinkyv1beta1.ReasonSuspended, "spec.suspend is true: slurmctld is stopped, and the operator drains, undrains and deletes no worker if it needs Slurm's answer for that"}
		return f, nil
	}
	endpoint, err := r.find(ctx, c)
	if err != nil {
		return facts{}, err
	}
	if endpoint == "" {
		r.forget(key)
		f.Missing = [2]string{slinkyv1beta1.ReasonNoRestAPI, "no RestApi refers to this Controller; create one, so that Slurm can be asked about its nodes"}
		return f, nil
	}
	secret, err := r.SecretValue(ctx, c.Namespace, *c.AuthJwtRef(), c.AuthJwtPath())
	if err != nil {
		problems, rest := problem.FromError(err)
		if rest != nil {
			return facts{}, rest
		}
		if known, ok := r.caches.Get(key); ok {
			// The key may be about to be replaced; the Slurm cache goes on with the key from before.
			f.Snapshot, f.Budget = known.Snapshot(), known.Budget(f.Now)
			return f, nil
		}
		f.Missing = [2]string{slinkyv1beta1.ReasonKeyMissing, problems.Message()}
		return f, nil
	}
	signed, err := r.signers(key, secret)
	if err != nil {
		return facts{}, fmt.Errorf("using the JWT key of %s: %w", key, err)
	}
	if _, known := r.caches.Get(key); !known {
		log.FromContext(ctx).Info("Connected to Slurm", "endpoint", endpoint)
	}
	//nolint:contextcheck // a Slurm cache outlives the reconcile that makes it; the registry ends it
	l, err := r.caches.Set(key, slurmcache.Config{Endpoint: endpoint, Issuer: signed.slurm, Checks: signed.checks})
	if err != nil {
		return facts{}, fmt.Errorf("linking to the Slurm cluster of %s: %w", key, err)
	}
	f.Snapshot, f.Budget = l.Snapshot(), l.Budget(f.Now)
	return f, nil
}

// report writes the conditions, if they changed, and reports what is new by events.
func (r *reconciler) report(ctx context.Context, c *slinkyv1beta1.Controller, f facts) (ctrl.Result, error) {
	before := c.DeepCopy()
	reached, first := reachable(f)
	pause, second := paused(f)
	var told []event
	for _, condition := range []metav1.Condition{reached, pause} {
		if e, ok := eventOf(meta.FindStatusCondition(before.Status.Conditions, condition.Type), condition); ok {
			told = append(told, e)
		}
		condition.ObservedGeneration = c.Generation
		kube.SetCondition(&c.Status.Conditions, condition, f.Now)
	}
	wrote, err := r.Applier.PatchStatus(ctx, before, c)
	if apierrors.IsConflict(err) {
		// Somebody else wrote the status at the same time. Changes of it do not wake this controller.
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	if err != nil {
		return ctrl.Result{}, reconcile.IgnoreGone(err)
	}
	if wrote {
		for _, e := range told {
			r.Recorder.Eventf(c, nil, e.kind, e.reason, "Reconcile", "%s", kube.Note(e.message))
		}
	}
	var result ctrl.Result
	for _, again := range []time.Time{first, second} {
		if wait := again.Sub(f.Now); !again.IsZero() && (result.RequeueAfter == 0 || wait < result.RequeueAfter) {
			result.RequeueAfter = max(time.Millisecond, wait)
		}
	}
	return result, nil
}

// find returns the endpoint of the oldest RestApi of a Controller, or nothing.
func (r *reconciler) find(ctx context.Context, c *slinkyv1beta1.Controller) (string, error) {
	if r.endpoint != "" {
		return r.endpoint, nil
	}
	var list slinkyv1beta1.RestApiList
	err := r.Client.List(ctx, &list, client.InNamespace(c.Namespace),
		client.MatchingFields{reference.Index: reference.To("Controller", c.Name)})
	if err != nil {
		return "", fmt.Errorf("listing the RestApis of %s/%s: %w", c.Namespace, c.Name, err)
	}
	going := func(a slinkyv1beta1.RestApi) bool { return a.DeletionTimestamp != nil }
	candidates := slices.DeleteFunc(list.Items, going)
	if len(candidates) == 0 {
		return "", nil
	}
	oldest := slices.MinFunc(candidates, func(a, b slinkyv1beta1.RestApi) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return oldest.URL(), nil
}

func (r *reconciler) signers(key slurmcache.Key, secret []byte) (issuers, error) {
	if known := r.issuers.Get(key); known.slurm != nil && bytes.Equal(known.key, secret) {
		return known, nil
	}
	slurm, err := token.NewSigned(secret, slurmUser, 0)
	if err != nil {
		return issuers{}, err
	}
	checks, err := token.NewSigned(secret, slurmcache.ChecksUser, 0)
	if err != nil {
		return issuers{}, err
	}
	signers := issuers{key: secret, slurm: slurm, checks: checks}
	r.issuers.Set(key, signers)
	return signers, nil
}

func (r *reconciler) forget(key slurmcache.Key) {
	r.issuers.Forget(key)
	r.caches.Delete(key)
}
