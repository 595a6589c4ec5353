// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
)

// KeyHolder is an object whose auth/slurm and JWT keys are generated when its spec leaves them out.
type KeyHolder interface {
	client.Object
	AuthSlurmRef() *corev1.SecretKeySelector
	AuthJwtRef() *corev1.SecretKeySelector
	AuthJwtPath() string
	GeneratesSlurmKey() bool
	GeneratesJwtKey() bool
}

var (
	_ KeyHolder = (*slinkyv1beta1.Controller)(nil)
	_ KeyHolder = (*slinkyv1beta1.Accounting)(nil)
)

// GeneratedKeys are the Secrets with the keys that the spec of holder leaves out. A Controller and an Accounting of the same
// name share them.
func GeneratedKeys(holder KeyHolder) []render.Secret {
	var out render.Output
	out.Ensure(holder.GeneratesSlurmKey(), render.Secret{
		Name: holder.AuthSlurmRef().Name, Key: holder.AuthSlurmRef().Key, Set: slinkyv1beta1.SlurmKeySetName, Content: render.SlurmKey,
	})
	out.Ensure(holder.GeneratesJwtKey(), render.Secret{Name: holder.AuthJwtRef().Name, Key: holder.AuthJwtRef().Key, Content: render.RandomBytes})
	return out.Secrets
}

// KeysPresent is the condition of a holder whose keys are all there.
func KeysPresent(holder KeyHolder) metav1.Condition {
	c := metav1.Condition{
		Type: slinkyv1beta1.ConditionKeysPresent, Status: metav1.ConditionTrue,
		Reason: slinkyv1beta1.ReasonKeysFound, Message: "the Secrets that the spec names hold the keys",
	}
	if holder.GeneratesSlurmKey() || holder.GeneratesJwtKey() {
		c.Reason, c.Message = slinkyv1beta1.ReasonKeysGenerated, "keys that the spec leaves out are generated"
	}
	return c
}

// KeysMissing turns the condition to False when reading the keys, or comparing them, met a problem.
func KeysMissing(c metav1.Condition, err error) metav1.Condition {
	if problems, _ := problem.FromError(err); len(problems) > 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, slinkyv1beta1.ReasonKeyMissing, problems.Message()
		switch reason := problems.Reason(); reason {
		case slinkyv1beta1.ReasonKeyMismatch, slinkyv1beta1.ReasonKeyInvalid:
			c.Reason = reason
		}
	}
	return c
}

// MungeDigest is the digest of the munge key; empty without munge.
func (r Reader) MungeDigest(ctx context.Context, namespace string, munge *slinkyv1beta1.Munge) (string, error) {
	if munge == nil {
		return "", nil
	}
	key, err := r.SecretValue(ctx, namespace, munge.KeyRef, "spec.munge.keyRef")
	return KeyDigest(munge.KeyRef, key), err
}

// MungeReferences are what a munge block refers to.
func MungeReferences(munge *slinkyv1beta1.Munge) []string {
	if munge == nil {
		return nil
	}
	return []string{To("Secret", munge.KeyRef.Name)}
}

// SSSDDigest is the digest of what SSSD of a Controller is configured with, sealed with the slurm key: it may hold a password. It is empty
// without SSSD.
func (r Reader) SSSDDigest(ctx context.Context, c *slinkyv1beta1.Controller, seal []byte, path string) (string, error) {
	sssd := c.Spec.SSSD
	if sssd == nil {
		return "", nil
	}
	conf, err := r.SecretValue(ctx, c.Namespace, sssd.ConfRef, path)
	content := map[string][]byte{sssd.ConfRef.Key: conf}
	if name := sssd.Authorities(); err == nil && name != "" {
		var files map[string]string
		files, err = r.ConfigMap(ctx, c.Namespace, name, path)
		for key, text := range files {
			content["authorities/"+key] = []byte(text)
		}
	}
	return label.Seal(seal, content), err
}

// SSSDReferences are what a Controller's SSSD refers to.
func SSSDReferences(sssd *slinkyv1beta1.SSSD) []string {
	if sssd == nil {
		return nil
	}
	refs := []string{To("Secret", sssd.ConfRef.Name)}
	if name := sssd.Authorities(); name != "" {
		refs = append(refs, To("ConfigMap", name))
	}
	return refs
}

// JwtDigest is the digest of what tokens are checked with: the JWT key and, where the spec names one, the set of public
// keys.
func (r Reader) JwtDigest(ctx context.Context, holder KeyHolder, jwks *corev1.ConfigMapKeySelector) (string, error) {
	ref := holder.AuthJwtRef()
	key, err := r.SecretValue(ctx, holder.GetNamespace(), *ref, holder.AuthJwtPath())
	if err != nil || jwks == nil {
		return KeyDigest(*ref, key), err
	}
	set, err := r.ConfigMapValue(ctx, holder.GetNamespace(), *jwks, "spec.jwksKeyRef")
	if err != nil {
		return "", err
	}
	return label.Digest(map[string][]byte{"key": key, "jwks": []byte(set)}), nil
}
