// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package accounting reconciles Accountings: slurmdbd and its embedded database.
package accounting

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	render "github.com/coxswain-hpc/coxswain/internal/render/accounting"
)

// +kubebuilder:rbac:groups=slinky.slurm.net,resources=accountings,verbs=get;list;watch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=accountings/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch;create;patch;delete

type reconciler struct{ reconcile.Base }

// Index adds the index by which Accountings are found by what they refer to.
func Index(ctx context.Context, mgr ctrl.Manager) error {
	return reconcile.IndexReferences(ctx, mgr, &slinkyv1beta1.Accounting{}, references)
}

// Setup registers the controller of Accountings.
func Setup(mgr ctrl.Manager, base reconcile.Base) error {
	r := &reconciler{Base: base}
	generic := &reconcile.Reconciler[*slinkyv1beta1.Accounting]{
		Base:    base,
		New:     func() *slinkyv1beta1.Accounting { return &slinkyv1beta1.Accounting{} },
		Decide:  r.decide,
		Observe: r.observe,
		Prunes:  Prunes(),
	}
	return generic.Setup(mgr, &slinkyv1beta1.AccountingList{}, reconcile.Watches{
		Owns:   []client.Object{&corev1.Secret{}, &corev1.Service{}, &appsv1.StatefulSet{}},
		PodsOf: slinkyv1beta1.NameSlurmdbd,
	})
}

// Prunes are the kinds of objects that are deleted when they are no longer rendered, as when slurmdbd moves out of the
// cluster: its Secret holds a password that nobody needs any more. Each needs the index of kube.SetupIndexes. Generated
// keys and passwords are not controlled by the Accounting, and stay.
func Prunes() []client.Object {
	return []client.Object{&corev1.Secret{}, &corev1.Service{}, &appsv1.StatefulSet{}}
}

func references(a *slinkyv1beta1.Accounting) []string {
	refs := []string{reconcile.Ref("Secret", a.AuthSlurmRef().Name), reconcile.Ref("Secret", a.AuthJwtRef().Name)}
	if ref := a.DatabasePasswordRef(); ref != nil {
		refs = append(refs, reconcile.Ref("Secret", ref.Name))
	}
	if a.Spec.JwksKeyRef != nil {
		refs = append(refs, reconcile.Ref("ConfigMap", a.Spec.JwksKeyRef.Name))
	}
	return append(refs, certificateReferences(a)...)
}

func (r *reconciler) decide(ctx context.Context, a *slinkyv1beta1.Accounting) (reconcile.Plan, error) {
	a.Status.ObservedGeneration = a.Generation
	if a.Spec.External {
		meta.RemoveStatusCondition(&a.Status.Conditions, slinkyv1beta1.ConditionKeysPresent) // of an Accounting that ran here before
		return reconcile.Plan{Output: render.Render(render.Input{Accounting: a})}, nil
	}
	in := render.Input{Accounting: a, Images: r.Images}
	keys, keysErr := r.keys(ctx, a, &in)
	problems, err := problem.FromError(errors.Join(keysErr, r.password(ctx, a, &in), r.certificates(ctx, a, &in)))
	if err != nil {
		return reconcile.Plan{}, err
	}
	plan := reconcile.Plan{Output: render.Render(in), Conditions: []metav1.Condition{keys}}
	plan.Problems = append(plan.Problems, problems...)
	return plan, nil
}

func (r *reconciler) keys(ctx context.Context, a *slinkyv1beta1.Accounting, in *render.Input) (metav1.Condition, error) {
	condition := reconcile.KeysPresent(a)
	err := reconcile.EnsureKeys(ctx, &r.Base, a)
	if err == nil {
		in.SealingKey, in.SlurmKeyDigest, err = r.SlurmKey(ctx, a.Namespace, *a.AuthSlurmRef(), "spec.slurmKeyRef")
	}
	if err == nil {
		in.JwtKeyDigest, err = r.JwtDigest(ctx, a, a.Spec.JwksKeyRef)
	}
	return reconcile.KeysMissing(condition, err), err
}

// password reads the password of the database, and generates that of an embedded one when the spec names none.
func (r *reconciler) password(ctx context.Context, a *slinkyv1beta1.Accounting, in *render.Input) error {
	ref := a.DatabasePasswordRef()
	if ref == nil {
		return problem.Errorf("spec", slinkyv1beta1.ReasonInvalidSpec, "slurmdbd needs a database: set storageConfig or embeddedDatabase")
	}
	if a.Spec.EmbeddedDatabase != nil && a.Spec.EmbeddedDatabase.PasswordKeyRef == nil {
		if err := r.EnsureSecret(ctx, r.Client.Scheme(), a, ref.Name, reconcile.RandomText(ref.Key)); err != nil {
			return err
		}
	}
	value, err := r.SecretValue(ctx, a.Namespace, *ref, render.PasswordPath(a))
	in.Password = string(value)
	return err
}

func (r *reconciler) observe(ctx context.Context, a *slinkyv1beta1.Accounting, plan *reconcile.Plan) error {
	now := r.Clock.Now()
	if a.Spec.External {
		plan.Parts = append(plan.Parts, kube.Part{Name: "slurmdbd", Ready: true, Reason: slinkyv1beta1.ReasonExternal, Message: "slurmdbd runs elsewhere"})
		r.tell(a, plan, Reachable(Sight{Accounting: a, Now: now}))
		return nil
	}
	sight := Sight{Accounting: a, Problems: plan.Problems, Now: now}
	var errs []error
	if a.Spec.EmbeddedDatabase != nil {
		part, _, err := r.ObserveWorkload(ctx, a.Namespace, a.DatabaseKey().Name, &appsv1.StatefulSet{}, "database")
		errs = append(errs, err)
		sight.EmbeddedStarting = !part.Ready
		plan.Parts = append(plan.Parts, part)
	}
	part, _, err := r.ObserveWorkload(ctx, a.Namespace, a.Key().Name, &appsv1.StatefulSet{}, "slurmdbd")
	errs = append(errs, err)
	sight.Pod, err = r.pod(ctx, a)
	errs = append(errs, err)
	reachable := Reachable(sight)
	if !part.Ready && reachable.Status == metav1.ConditionFalse {
		part.Reason, part.Message = reachable.Reason, reachable.Message
	}
	plan.Parts = append(plan.Parts, part)
	plan.Again = sight.Again()
	r.tell(a, plan, reachable)
	return errors.Join(errs...)
}

// tell adds the condition to the plan, and an event when slurmdbd has just lost its database.
func (r *reconciler) tell(a *slinkyv1beta1.Accounting, plan *reconcile.Plan, c metav1.Condition) {
	plan.Conditions = append(plan.Conditions, c)
	before := meta.FindStatusCondition(a.Status.Conditions, c.Type)
	if c.Reason == slinkyv1beta1.ReasonDatabaseUnreachable && (before == nil || before.Reason != c.Reason) {
		r.Recorder.Eventf(a, nil, corev1.EventTypeWarning, c.Reason, "Observe", "%s", c.Message)
	}
}

// pod is the one of slurmdbd, or nil.
func (r *reconciler) pod(ctx context.Context, a *slinkyv1beta1.Accounting) (*corev1.Pod, error) {
	var pod corev1.Pod
	key := client.ObjectKey{Namespace: a.Namespace, Name: a.Key().Name + "-0"}
	if err := r.Client.Get(ctx, key, &pod); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // no pod is an answer
		}
		return nil, fmt.Errorf("reading Pod %s: %w", key, err)
	}
	return &pod, nil
}
