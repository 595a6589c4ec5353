// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/slurm/keyset"
)

// ensureSecrets creates the Secrets with generated keys that do not exist. made is true if one was created, or shared for the first
// time, whose keys are read in the next pass.
func (b *Base) ensureSecrets(ctx context.Context, owner client.Object, secrets []render.Secret) (made bool, err error) {
	for _, s := range secrets {
		created, err := b.ensureSecret(ctx, owner, s)
		if err != nil {
			return made, err
		}
		made = made || created
	}
	return made, nil
}

// ensureSecret creates a Secret when it does not exist, and adds owner to the owners of a generated one.
func (b *Base) ensureSecret(ctx context.Context, owner client.Object, s render.Secret) (made bool, err error) {
	key := types.NamespacedName{Namespace: owner.GetNamespace(), Name: s.Name}
	secret, err := b.ReadSecret(ctx, key)
	switch {
	case apierrors.IsNotFound(err):
		return true, b.createSecret(ctx, owner, s)
	case err != nil:
		return false, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	if _, ours := secret.Labels[kube.KeyLabel]; !ours || s.Unowned {
		return false, nil // a user's own, found under the name that would have been generated
	}
	owned, err := controllerutil.HasOwnerReference(secret.OwnerReferences, owner, b.Client.Scheme())
	if err != nil || owned {
		return false, err
	}
	before := secret.DeepCopy()
	if err := controllerutil.SetOwnerReference(owner, secret, b.Client.Scheme()); err != nil {
		return false, fmt.Errorf("owning Secret %s: %w", key, err)
	}
	err = b.Client.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if IgnoreGone(err) != nil {
		return false, fmt.Errorf("owning Secret %s: %w", key, err)
	}
	// Another owner may have made it after the facts were gathered, or have changed it at the same time: the next pass reads it anew.
	return true, nil
}

func (b *Base) createSecret(ctx context.Context, owner client.Object, s render.Secret) error {
	data, err := generate(ctx, s)
	if err != nil {
		return fmt.Errorf("generating Secret %s/%s: %w", owner.GetNamespace(), s.Name, err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: owner.GetNamespace(), Name: s.Name,
			Labels:      label.Merge(s.Labels, map[string]string{label.ManagedBy: label.Manager, kube.KeyLabel: "generated"}),
			Annotations: s.Annotations,
		},
		Type: corev1.SecretTypeOpaque,
		Data: data,
	}
	if !s.Unowned {
		if err := controllerutil.SetOwnerReference(owner, secret, b.Client.Scheme()); err != nil {
			return fmt.Errorf("owning Secret %s/%s: %w", owner.GetNamespace(), s.Name, err)
		}
	}
	err = b.Client.Create(ctx, secret, client.FieldOwner(kube.FieldManager))
	if err != nil && !apierrors.IsAlreadyExists(err) { // two owners asked at once
		return fmt.Errorf("creating Secret %s/%s: %w", owner.GetNamespace(), s.Name, err)
	}
	return nil
}

// keyBytes is the size of generated keys; Slurm's documentation uses as many.
const keyBytes = 1024

// generate makes the content of a Secret with generated keys.
func generate(ctx context.Context, s render.Secret) (map[string][]byte, error) {
	switch s.Content {
	case render.RandomBytes:
		return map[string][]byte{s.Key: randomBytes()}, nil
	case render.RandomText:
		return map[string][]byte{s.Key: []byte(rand.Text())}, nil
	case render.SlurmKey:
		key := randomBytes()
		// A slurmd that was started without a set of keys does not learn to use one, so it is there from the beginning.
		set, err := keyset.New(key)
		return map[string][]byte{s.Key: key, s.Set: set}, err
	case render.SSHHostKeys:
		return hostKeys(ctx)
	default:
		return nil, fmt.Errorf("nobody knows how to generate %q", s.Content)
	}
}

// randomBytes never fails: the program ends when the system has no randomness (crypto/rand.Read).
func randomBytes() []byte {
	value := make([]byte, keyBytes)
	_, _ = rand.Read(value)
	return value
}
