// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/slurm/keyset"
)

// SecretValue reads one key of a Secret that the field at path names. A Secret or key that is missing is a problem that
// heals when it appears.
func (b *Base) SecretValue(ctx context.Context, namespace string, ref corev1.SecretKeySelector, path string) ([]byte, error) {
	secret, err := b.Secret(ctx, namespace, ref, path)
	if err != nil {
		return nil, err
	}
	return secret.Data[ref.Key], nil
}

// Secret reads the Secret that the field at path names like SecretValue, when more than one value of it matters.
func (b *Base) Secret(ctx context.Context, namespace string, ref corev1.SecretKeySelector, path string) (*corev1.Secret, error) {
	secret, err := b.readSecret(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name})
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

// readSecret reads a Secret: one with generated keys from the cache, if that is as new as the metadata that wakes whoever depends
// on it, and any other from the server.
func (b *Base) readSecret(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := b.Client.Get(ctx, key, secret); err == nil {
		seen, err := b.SecretVersion(ctx, key.Namespace, key.Name)
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
	return secret, b.Live.Get(ctx, key, secret)
}

func versionOf(o client.Object) string { return string(o.GetUID()) + "/" + o.GetResourceVersion() }

// SecretVersion says which version of a Secret the cache of metadata has; nothing when it has none.
func (b *Base) SecretVersion(ctx context.Context, namespace, name string) (string, error) {
	secret := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}
	if err := b.References.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return "", fmt.Errorf("reading the metadata of Secret %s/%s: %w", namespace, name, err)
	}
	return versionOf(secret), nil
}

// SlurmKey reads the auth/slurm key, and the set of keys beside it in the same Secret, which daemons prefer where there is
// one. The digest is that of both. A set that Slurm would not accept is a problem: no daemon starts with it.
func (b *Base) SlurmKey(ctx context.Context, namespace string, ref corev1.SecretKeySelector, path string) (key []byte, digest string, err error) {
	secret, err := b.Secret(ctx, namespace, ref, path)
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

// ConfigMap reads a ConfigMap that the field at path names, binary keys included.
func (b *Base) ConfigMap(ctx context.Context, namespace, name, path string) (map[string]string, error) {
	cm := &corev1.ConfigMap{}
	if err := b.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, cm); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, problem.Waitingf(path, slinkyv1beta1.ReasonReferenceNotFound, "ConfigMap %s does not exist; create it or remove the reference", name)
		}
		return nil, fmt.Errorf("reading ConfigMap %s/%s: %w", namespace, name, err)
	}
	content := map[string]string{}
	maps.Copy(content, cm.Data)
	for key, value := range cm.BinaryData {
		content[key] = string(value)
	}
	return content, nil
}

// Controller reads the Controller that an object refers to.
func (b *Base) Controller(ctx context.Context, namespace string, ref slinkyv1beta1.ObjectReference) (*slinkyv1beta1.Controller, error) {
	if err := ref.InNamespace(namespace); err != nil {
		return nil, problem.Errorf("spec.controllerRef.namespace", slinkyv1beta1.ReasonReferenceRefused, "%v", err)
	}
	c := &slinkyv1beta1.Controller{}
	if err := b.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, c); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, problem.Waitingf("spec.controllerRef", slinkyv1beta1.ReasonReferenceNotFound, "Controller %s does not exist", ref.Name)
		}
		return nil, fmt.Errorf("reading Controller %s/%s: %w", namespace, ref.Name, err)
	}
	return c, nil
}

// EnsureSecret creates a Secret of generated values when it does not exist. What exists is never touched: these are keys
// that running daemons hold. It belongs to every owner that asked for it, and goes with the last of them
// (docs/decisions/006-generated-keys.md).
func (b *Base) EnsureSecret(ctx context.Context, scheme *runtime.Scheme, owner client.Object, name string, generate func() (map[string][]byte, error)) error {
	secret, err := b.readSecret(ctx, types.NamespacedName{Namespace: owner.GetNamespace(), Name: name})
	switch {
	case apierrors.IsNotFound(err):
		return b.createSecret(ctx, scheme, owner, name, generate)
	case err != nil:
		return fmt.Errorf("reading Secret %s/%s: %w", owner.GetNamespace(), name, err)
	}
	if _, ours := secret.Labels[kube.KeyLabel]; !ours {
		return nil // a user's own, found under the name that would have been generated
	}
	owned, err := controllerutil.HasOwnerReference(secret.OwnerReferences, owner, scheme)
	if err != nil || owned {
		return err
	}
	before := secret.DeepCopy()
	if err := controllerutil.SetOwnerReference(owner, secret, scheme); err != nil {
		return fmt.Errorf("owning Secret %s/%s: %w", owner.GetNamespace(), name, err)
	}
	if err := b.Client.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("owning Secret %s/%s: %w", owner.GetNamespace(), name, err)
	}
	return nil
}

func (b *Base) createSecret(ctx context.Context, scheme *runtime.Scheme, owner client.Object, name string, generate func() (map[string][]byte, error)) error {
	data, err := generate()
	if err != nil {
		return fmt.Errorf("generating Secret %s/%s: %w", owner.GetNamespace(), name, err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: owner.GetNamespace(), Name: name,
			Labels: map[string]string{label.ManagedBy: label.Manager, kube.KeyLabel: "generated"},
		},
		Type: corev1.SecretTypeOpaque,
		Data: data,
	}
	if err := controllerutil.SetOwnerReference(owner, secret, scheme); err != nil {
		return fmt.Errorf("owning Secret %s/%s: %w", owner.GetNamespace(), name, err)
	}
	err = b.Client.Create(ctx, secret, client.FieldOwner(kube.FieldManager))
	if err != nil && !apierrors.IsAlreadyExists(err) { // two owners asked at once
		return fmt.Errorf("creating Secret %s/%s: %w", owner.GetNamespace(), name, err)
	}
	return nil
}

// RandomKey returns a generator of size random bytes under one key.
func RandomKey(key string, size int) func() (map[string][]byte, error) {
	return func() (map[string][]byte, error) {
		value := make([]byte, size)
		_, err := rand.Read(value)
		return map[string][]byte{key: value}, err
	}
}

// RandomSlurmKey returns a generator of a random auth/slurm key of size bytes under one key, and of the set of keys that
// consists of it. A slurmd that was started without a set does not learn to use one, so it is there from the beginning.
func RandomSlurmKey(key string, size int) func() (map[string][]byte, error) {
	return func() (map[string][]byte, error) {
		data, err := RandomKey(key, size)()
		if err != nil {
			return nil, err
		}
		data[slinkyv1beta1.SlurmKeySetName], err = keyset.New(data[key])
		return data, err
	}
}

// RandomText returns a generator of a random text of letters and digits, with 130 bits, under one key.
func RandomText(key string) func() (map[string][]byte, error) {
	return func() (map[string][]byte, error) {
		return map[string][]byte{key: []byte(rand.Text())}, nil
	}
}

// ObserveWorkload reads a Deployment or StatefulSet and says as a part how far it is.
func (b *Base) ObserveWorkload(ctx context.Context, namespace, name string, obj client.Object, part string) (kube.Part, Workload, error) {
	err := b.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, obj)
	if apierrors.IsNotFound(err) {
		return kube.Part{Name: part, Reason: slinkyv1beta1.ReasonRollingOut, Message: "is not created yet"}, Workload{}, nil
	}
	if err != nil {
		return kube.Part{}, Workload{}, fmt.Errorf("reading %T %s/%s: %w", obj, namespace, name, err)
	}
	var w Workload
	switch o := obj.(type) {
	case *appsv1.Deployment:
		w = Workload{Desired: value(o.Spec.Replicas), Replicas: o.Status.Replicas, Ready: o.Status.ReadyReplicas, Updated: o.Status.UpdatedReplicas,
			Current: o.Status.ObservedGeneration >= o.Generation}
	case *appsv1.StatefulSet:
		w = Workload{Desired: value(o.Spec.Replicas), Replicas: o.Status.Replicas, Ready: o.Status.ReadyReplicas, Updated: o.Status.UpdatedReplicas,
			Current: o.Status.ObservedGeneration >= o.Generation}
	default:
		return kube.Part{}, Workload{}, errors.New("observing a workload that is neither Deployment nor StatefulSet")
	}
	return w.part(part), w, nil
}

// Workload is how far a Deployment or StatefulSet is.
type Workload struct {
	Desired, Replicas, Ready, Updated int32
	// Current says that the counts belong to the newest spec.
	Current bool
}

func (w Workload) part(name string) kube.Part {
	switch {
	case !w.Current || w.Updated < w.Desired:
		return kube.Part{Name: name, Reason: slinkyv1beta1.ReasonRollingOut, Message: fmt.Sprintf("%d of %d pods are up to date", w.Updated, w.Desired)}
	case w.Ready < w.Desired:
		return kube.Part{Name: name, Reason: slinkyv1beta1.ReasonPodsNotReady, Message: fmt.Sprintf("%d of %d pods are ready", w.Ready, w.Desired)}
	default:
		return kube.Part{Name: name, Ready: true, Reason: slinkyv1beta1.ReasonAvailable, Message: fmt.Sprintf("%d of %d pods are ready", w.Ready, w.Desired)}
	}
}

func value(p *int32) int32 {
	if p == nil {
		return 1
	}
	return *p
}

func namesIn(list client.ObjectList) []string {
	var names []string
	_ = meta.EachListItem(list, func(o runtime.Object) error {
		if accessor, err := meta.Accessor(o); err == nil {
			names = append(names, accessor.GetName())
		}
		return nil
	})
	return names
}
