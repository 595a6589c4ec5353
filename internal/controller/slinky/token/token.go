// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package token reconciles Tokens: each is a JSON web token for a Slurm user, kept fresh in a Secret. The Secret belongs
// to the Token and goes with it. When the operator is away nothing is renewed, and a token lives for another fifth of its
// lifetime at least. Neither a key nor a token enters a status, an event or the log.
package token

import (
	"context"
	"fmt"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/render/jwt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/render"
	slurmtoken "github.com/coxswain-hpc/coxswain/internal/slurm/token"
)

// +kubebuilder:rbac:groups=slinky.slurm.net,resources=tokens,verbs=list;watch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=tokens/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch

type reconciler struct{ reconcile.Base }

// Index adds the index by which Tokens are found by what they refer to.
func Index(ctx context.Context, mgr ctrl.Manager) error {
	return reference.AddIndex(ctx, mgr, &slinkyv1beta1.Token{}, references)
}

// Setup registers the controller of Tokens.
func Setup(mgr ctrl.Manager, base reconcile.Base) error {
	r := &reconciler{Base: base}
	kind := &reconcile.Kind[*slinkyv1beta1.Token, facts, *plan, struct{}]{
		Base:   &r.Base,
		New:    func() *slinkyv1beta1.Token { return &slinkyv1beta1.Token{} },
		Effect: render.Effect,
		Gather: r.gather,
		Decide: decide,
		Report: report,
	}
	return kind.Setup(mgr, reconcile.Watches{List: &slinkyv1beta1.TokenList{}, Owns: []client.Object{&corev1.Secret{}}})
}

// references returns the Secret with the key, and the Secret of the token: when somebody takes its labels away it leaves the cache of our
// own objects.
func references(t *slinkyv1beta1.Token) []string {
	refs := []string{reference.To("Secret", t.TokenRef().Name)}
	if key := t.AuthJwtRef(); key != nil {
		refs = append(refs, reference.To("Secret", key.Name))
	}
	return refs
}

// facts are what is known about a Token.
type facts struct {
	jwt.Input
	// problems are what is wrong with the key.
	problems problem.List
}

func (r *reconciler) gather(ctx context.Context, t *slinkyv1beta1.Token) (facts, error) {
	f := facts{Input: jwt.Input{Token: t, ID: string(uuid.NewUUID()), Now: r.Clock.Now()}}
	err := r.key(ctx, t, &f.Input)
	if err == nil {
		err = r.stored(ctx, t, &f.Input)
	}
	f.problems, err = problem.FromError(err)
	return f, err
}

// plan is what is to be done for a Token.
type plan struct {
	reconcile.Plan
	// claims are the claims of the token that is to be in the Secret.
	claims slurmtoken.Claims
	// again is when the token is to be renewed.
	again time.Time
}

func decide(f facts) *plan {
	if len(f.problems) > 0 {
		return &plan{Plan: reconcile.Plan{Output: render.Output{Problems: f.problems}}}
	}
	out := jwt.Render(f.Input)
	return &plan{Plan: reconcile.Plan{Output: out.Output}, claims: out.Claims, again: out.Again}
}

func report(t *slinkyv1beta1.Token, o reconcile.Outcome[facts, *plan, struct{}]) reconcile.Report {
	t.Status.ObservedGeneration = t.Generation
	if len(o.Facts.problems) > 0 {
		return reconcile.Report{}
	}
	if o.Driven { // it would be untrue before
		t.Status.IssuedAt, t.Status.ExpiresAt = new(metav1.NewTime(o.Plan.claims.IssuedAt)), new(metav1.NewTime(o.Plan.claims.Expiry))
	}
	return reconcile.Report{
		ReadyReason: slinkyv1beta1.ReasonTokenIssued, Again: o.Plan.again,
		Parts: []kube.Part{{Name: "token", Ready: true, Message: jwt.Message(t, o.Plan.claims)}},
	}
}

// key reads the key that signs, and checks in its Secret whether it may sign for this user.
func (r *reconciler) key(ctx context.Context, t *slinkyv1beta1.Token, in *jwt.Input) error {
	path, ref := t.AuthJwtPath(), t.AuthJwtRef()
	if ref == nil {
		return problem.Errorf(path, slinkyv1beta1.ReasonInvalidSpec, "must be set")
	}
	if err := t.AuthJwtInNamespace(); err != nil {
		return problem.Errorf(path+".namespace", slinkyv1beta1.ReasonReferenceRefused, "%v", err)
	}
	secret, err := r.Secret(ctx, t.Namespace, *ref, path)
	if err != nil {
		return err
	}
	if slurmtoken.Privileged(t.User()) && secret.Annotations[slinkyv1beta1.AnnotationAllowPrivilegedTokens] != "true" {
		return problem.Errorf("spec.username", slinkyv1beta1.ReasonPrivilegedUser,
			"a token for %s can do everything in Slurm, and Secret %s does not allow it. To allow it, the owner of the Secret sets annotation %s=true",
			t.User(), ref.Name, slinkyv1beta1.AnnotationAllowPrivilegedTokens)
	}
	id, asymmetric := secret.Annotations[slinkyv1beta1.AnnotationJwtKeyID]
	if asymmetric && t.Spec.JwtKeyRef != nil {
		in.Key, err = slurmtoken.NewRS256(secret.Data[ref.Key], id)
	} else {
		in.Key, err = slurmtoken.NewHS256(secret.Data[ref.Key])
	}
	if err != nil {
		return problem.Errorf(path, slinkyv1beta1.ReasonInvalidSpec, "key %s of Secret %s cannot be used: %v", ref.Key, ref.Name, err)
	}
	return nil
}

// stored reads the token that is there. A Secret that is not ours is not in the cache, and is noticed when it would be written.
func (r *reconciler) stored(ctx context.Context, t *slinkyv1beta1.Token, in *jwt.Input) error {
	ref := t.TokenRef()
	var secret corev1.Secret
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: t.Namespace, Name: ref.Name}, &secret)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("reading Secret %s/%s: %w", t.Namespace, ref.Name, err)
	case metav1.IsControlledBy(&secret, t):
		in.Stored, in.Sealed = string(secret.Data[ref.Key]), secret.Immutable != nil && *secret.Immutable
	}
	return nil
}
