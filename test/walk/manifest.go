// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Applicant is the field manager of what the walk applies.
const Applicant = client.FieldOwner("coxswain-walk")

// Manifest is a file of objects, in the order in which they are to be applied.
type Manifest []*unstructured.Unstructured

// ReadManifest reads a file of YAML documents.
func ReadManifest(path string) (Manifest, error) {
	text, err := os.ReadFile(path) //nolint:gosec // a file of the repository
	if err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	m, err := ParseManifest(text)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return m, nil
}

// ParseManifest parses YAML documents.
func ParseManifest(text []byte) (Manifest, error) {
	var m Manifest
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		if err != nil {
			return nil, fmt.Errorf("splitting YAML: %w", err)
		}
		content := map[string]any{}
		if err := yaml.Unmarshal(document, &content); err != nil {
			return nil, fmt.Errorf("parsing YAML: %w", err)
		}
		if len(content) > 0 {
			m = append(m, &unstructured.Unstructured{Object: content})
		}
	}
}

// In puts the objects into a namespace.
func (m Manifest) In(namespace string) Manifest {
	for _, o := range m {
		o.SetNamespace(namespace)
	}
	return m
}

// Only returns the first object of a kind.
func (m Manifest) Only(kind string) (*unstructured.Unstructured, error) {
	for _, o := range m {
		if o.GetKind() == kind {
			return o, nil
		}
	}
	return nil, fmt.Errorf("the manifest has no %s", kind)
}

// ApplyManifest applies the objects one after the other, on the server's side.
func (k *Kubernetes) ApplyManifest(ctx context.Context, m Manifest) error {
	for _, o := range m {
		err := k.Apply(ctx, client.ApplyConfigurationFromUnstructured(o.DeepCopy()), Applicant, client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("applying %s %s/%s: %w", o.GetKind(), o.GetNamespace(), o.GetName(), err)
		}
	}
	return nil
}

// EnsureNamespace makes a namespace unless there is one of that name.
func (k *Kubernetes) EnsureNamespace(ctx context.Context, name string) error {
	err := k.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("creating the namespace %s: %w", name, err)
	}
	return nil
}
