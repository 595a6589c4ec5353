// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"
	"fmt"
	"maps"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/problem"
)

// Reader reads what specs refer to.
type Reader struct {
	// Client reads from the manager's cache and writes to the server. Of Secrets, ConfigMaps and workloads the cache holds
	// only those that Coxswain made.
	Client client.Client
	// Live reads from the server: users' Secrets and ConfigMaps, which are not kept in memory.
	Live client.Reader
	// Metadata is a cache of the metadata of all Secrets and ConfigMaps, watched to notice that one changed.
	Metadata cache.Cache
}

// ConfigMap reads a ConfigMap that the field at path names, binary keys included.
func (r Reader) ConfigMap(ctx context.Context, namespace, name, path string) (map[string]string, error) {
	cm := &corev1.ConfigMap{}
	if err := r.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, cm); err != nil {
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

// ConfigMapValue reads one key of a ConfigMap that the field at path names. A ConfigMap or key that is missing is a problem that
// resolves itself when it appears.
func (r Reader) ConfigMapValue(ctx context.Context, namespace string, ref corev1.ConfigMapKeySelector, path string) (string, error) {
	content, err := r.ConfigMap(ctx, namespace, ref.Name, path)
	switch value := content[ref.Key]; {
	case err != nil:
		return "", err
	case value == "":
		return "", problem.Waitingf(path, slinkyv1beta1.ReasonKeyMissing, "ConfigMap %s has no key %s, or an empty one", ref.Name, ref.Key)
	case !utf8.ValidString(value):
		return "", problem.Waitingf(path, slinkyv1beta1.ReasonKeyInvalid, "key %s of ConfigMap %s is not text in UTF-8", ref.Key, ref.Name)
	default:
		return value, nil
	}
}

// Controller reads the Controller that an object refers to.
func (r Reader) Controller(ctx context.Context, namespace string, ref slinkyv1beta1.ObjectReference) (*slinkyv1beta1.Controller, error) {
	if err := ref.InNamespace(namespace); err != nil {
		return nil, problem.Errorf("spec.controllerRef.namespace", slinkyv1beta1.ReasonReferenceRefused, "%v", err)
	}
	c := &slinkyv1beta1.Controller{}
	if err := r.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, c); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, problem.Waitingf("spec.controllerRef", slinkyv1beta1.ReasonReferenceNotFound, "Controller %s does not exist", ref.Name)
		}
		return nil, fmt.Errorf("reading Controller %s/%s: %w", namespace, ref.Name, err)
	}
	return c, nil
}
