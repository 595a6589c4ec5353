// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
)

// keyBytes is the size of generated keys; Slurm's documentation uses as many.
const keyBytes = 1024

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

// EnsureKeys generates the keys that the spec of holder leaves out and that do not exist. A Controller and an Accounting
// of the same name share them.
func EnsureKeys(ctx context.Context, b *Base, holder KeyHolder) error {
	scheme := b.Client.Scheme()
	if holder.GeneratesSlurmKey() {
		ref := holder.AuthSlurmRef()
		if err := b.EnsureSecret(ctx, scheme, holder, ref.Name, RandomSlurmKey(ref.Key, keyBytes)); err != nil {
			return err
		}
	}
	if holder.GeneratesJwtKey() {
		ref := holder.AuthJwtRef()
		if err := b.EnsureSecret(ctx, scheme, holder, ref.Name, RandomKey(ref.Key, keyBytes)); err != nil {
			return err
		}
	}
	return nil
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

// JwtDigest is the digest of what tokens are checked with: the JWT key and, where the spec names one, the set of public
// keys.
func (b *Base) JwtDigest(ctx context.Context, holder KeyHolder, jwks *corev1.ConfigMapKeySelector) (string, error) {
	ref := holder.AuthJwtRef()
	key, err := b.SecretValue(ctx, holder.GetNamespace(), *ref, holder.AuthJwtPath())
	if err != nil || jwks == nil {
		return KeyDigest(*ref, key), err
	}
	const path = "spec.jwksKeyRef"
	content, err := b.ConfigMap(ctx, holder.GetNamespace(), jwks.Name, path)
	if err != nil {
		return "", err
	}
	set, ok := content[jwks.Key]
	if !ok {
		return "", problem.Waitingf(path, slinkyv1beta1.ReasonKeyMissing, "ConfigMap %s has no key %s", jwks.Name, jwks.Key)
	}
	return label.Digest(map[string][]byte{"key": key, "jwks": []byte(set)}), nil
}
