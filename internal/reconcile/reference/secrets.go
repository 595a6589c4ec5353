// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/slurm/keyset"
)

// SecretValue reads one key of a Secret that the field at path names. A Secret or key that is missing is a problem that resolves itself
// when it appears.
func (r Reader) SecretValue(ctx context.Context, namespace string, ref corev1.SecretKeySelector, path string) ([]byte, error) {
	secret, err := r.Secret(ctx, namespace, ref, path)
	if err != nil {
		return nil, err
	}
	return secret.Data[ref.Key], nil
}

// Secret reads the Secret that the field at path names like SecretValue, when more than one value of it matters.
func (r Reader) Secret(ctx context.Context, namespace string, ref corev1.SecretKeySelector, path string) (*corev1.Secret, error) {
	secret, err := r.ReadSecret(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name})
	if err != nil {
		if apierrors.IsNotFound(err) {
			return nil, problem.Waitingf(path, slinkyv1beta1.ReasonKeyMissing, "Secret %s does not exist; create it with the key %s", ref.Name, ref.Key)
		}
		return nil, fmt.Errorf("reading Secret %s/%s: %w", namespace, ref.Name, err)
	}
	if len(secret.Data[ref.Key]) == 0 {
		return nil, problem.Waitingf(path, slinkyv1beta1.ReasonKeyMissing, "Secret %s has no key %s, or an empty one", ref.Name, ref.Key)
	}
	return secret, nil
}

// ReadSecret reads a Secret: one with generated keys from the cache, if that is as new as the metadata that wakes the reconcilers that
// depend on it, and any other from the server.
func (r Reader) ReadSecret(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := r.Client.Get(ctx, key, secret); err == nil {
		seen, err := r.SecretVersion(ctx, key.Namespace, key.Name)
		if err != nil {
			return nil, err
		}
		if seen != "" && seen == versionOf(secret) {
			return secret, nil
		}
	} else if !apierrors.IsNotFound(err) {
		return nil, err
	}
	secret = &corev1.Secret{}
	return secret, r.Live.Get(ctx, key, secret)
}

func versionOf(o client.Object) string { return string(o.GetUID()) + "/" + o.GetResourceVersion() }

// SecretVersion returns the version of a Secret in the cache of metadata; empty when it has none.
func (r Reader) SecretVersion(ctx context.Context, namespace, name string) (string, error) {
	return r.version(ctx, "Secret", namespace, name)
}

// ConfigMapVersion returns the version of a ConfigMap in the cache of metadata; empty when it has none.
func (r Reader) ConfigMapVersion(ctx context.Context, namespace, name string) (string, error) {
	return r.version(ctx, "ConfigMap", namespace, name)
}

func (r Reader) version(ctx context.Context, kind, namespace, name string) (string, error) {
	object := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind}}
	if err := r.Metadata.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, object); err != nil {
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return "", fmt.Errorf("reading the metadata of %s %s/%s: %w", kind, namespace, name, err)
	}
	return versionOf(object), nil
}

// SlurmKey reads the auth/slurm key, and the set of keys beside it in the same Secret, which daemons prefer where there is
// one. The digest is that of both. A set that Slurm would not accept is a problem: no daemon starts with it.
func (r Reader) SlurmKey(ctx context.Context, namespace string, ref corev1.SecretKeySelector, path string) (key []byte, digest string, err error) {
	secret, err := r.Secret(ctx, namespace, ref, path)
	if err != nil {
		return nil, "", err
	}
	content := map[string][]byte{ref.Key: secret.Data[ref.Key]}
	if set, ok := secret.Data[slinkyv1beta1.SlurmKeySetName]; ok {
		if err := keyset.Check(set); err != nil {
			return nil, "", problem.Errorf(path, slinkyv1beta1.ReasonKeyInvalid, "%s in Secret %s is no set of keys for auth/slurm: %v",
				slinkyv1beta1.SlurmKeySetName, ref.Name, err)
		}
		content[slinkyv1beta1.SlurmKeySetName] = set
	}
	return secret.Data[ref.Key], label.Digest(content), nil
}

// KeyDigest is the digest of a key that has been read. The keys are random, so that nobody can guess them by it.
func KeyDigest(ref corev1.SecretKeySelector, value []byte) string {
	return label.Digest(map[string][]byte{ref.Key: value})
}
