// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package token reconciles Tokens: each is a JSON web token for a Slurm user, kept fresh in a Secret. The Secret belongs
// to the Token and goes with it. When the operator is away nothing is renewed, and a token lives for another fifth of its
// lifetime at least. Neither a key nor a token enters a status, an event or the log.
package token

import (
	"context"
	"fmt"

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
	render "github.com/coxswain-hpc/coxswain/internal/render/token"
	slurmtoken "github.com/coxswain-hpc/coxswain/internal/slurm/token"
)

// +kubebuilder:rbac:groups=slinky.slurm.net,resources=tokens,verbs=list;watch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=tokens/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch

type reconciler struct{ reconcile.Base }

// Index adds the index by which Tokens are found by what they refer to.
func Index(ctx context.Context, mgr ctrl.Manager) error {
	return reconcile.IndexReferences(ctx, mgr, &slinkyv1beta1.Token{}, references)
}

// Setup registers the controller of Tokens.
func Setup(mgr ctrl.Manager, base reconcile.Base) error {
	r := &reconciler{Base: base}
	generic := &reconcile.Reconciler[*slinkyv1beta1.Token]{
		Base:    base,
		New:     func() *slinkyv1beta1.Token { return &slinkyv1beta1.Token{} },
		Decide:  r.decide,
		Observe: func(context.Context, *slinkyv1beta1.Token, *reconcile.Plan) error { return nil },
	}
	return generic.Setup(mgr, &slinkyv1beta1.TokenList{}, reconcile.Watches{Owns: []client.Object{&corev1.Secret{}}})
}

// references are the Secret with the key, and that of the token: when somebody takes its labels away it leaves the cache of
// our own objects.
func references(t *slinkyv1beta1.Token) []string {
	refs := []string{reconcile.Ref("Secret", t.TokenRef().Name)}
	if key := t.AuthJwtRef(); key != nil {
		refs = append(refs, reconcile.Ref("Secret", key.Name))
	}
	return refs
}

func (r *reconciler) decide(ctx context.Context, t *slinkyv1beta1.Token) (reconcile.Plan, error) {
	t.Status.ObservedGeneration = t.Generation
	in := render.Input{Token: t, ID: string(uuid.NewUUID()), Now: r.Clock.Now()}
	err := r.key(ctx, t, &in)
	if err == nil {
		err = r.stored(ctx, t, &in)
	}
	problems, err := problem.FromError(err)
	if err != nil || len(problems) > 0 {
		return reconcile.Plan{Output: reconcile.Failed(problems)}, err
	}
	out := render.Render(in)
	return reconcile.Plan{
		Output: out.Output, Again: out.Again, ReadyReason: slinkyv1beta1.ReasonTokenIssued,
		Parts: []kube.Part{{Name: "token", Ready: true, Message: render.Message(t, out.Claims)}},
		Applied: func() {
			t.Status.IssuedAt, t.Status.ExpiresAt = new(metav1.NewTime(out.Claims.IssuedAt)), new(metav1.NewTime(out.Claims.Expiry))
		},
	}, nil
}

// key reads the key that signs, and asks its Secret whether it may sign for this user.
func (r *reconciler) key(ctx context.Context, t *slinkyv1beta1.Token, in *render.Input) error {
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
			"a token for %s can do everything in Slurm, which Secret %s does not allow; its owner does so with annotation %s=true",
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

// stored reads the token that is there. A Secret that is not ours is not in the cache, and is noticed when it would be
// written.
func (r *reconciler) stored(ctx context.Context, t *slinkyv1beta1.Token, in *render.Input) error {
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
