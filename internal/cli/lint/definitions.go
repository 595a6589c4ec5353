// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-hpc/coxswain/helm/coxswain-crds/crd"
	"github.com/coxswain-hpc/coxswain/internal/webhook/definition"
)

// Definitions are the definitions of the kinds of both API groups. A definition is read when an object needs it: its rules
// take long to compile.
type Definitions struct {
	files map[schema.GroupVersionKind][]byte
	read  map[schema.GroupVersionKind]*definition.Definition
}

// NewDefinitions returns the definitions that this program was built with.
func NewDefinitions() (*Definitions, error) {
	out := &Definitions{files: map[schema.GroupVersionKind][]byte{}, read: map[schema.GroupVersionKind]*definition.Definition{}}
	paths, err := fs.Glob(crd.Files, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing the definitions: %w", err)
	}
	for _, path := range paths {
		text, err := crd.Files.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		var d apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &d); err != nil {
			return nil, fmt.Errorf("decoding %s: %w", path, err)
		}
		for _, version := range d.Spec.Versions {
			out.files[schema.GroupVersionKind{Group: d.Spec.Group, Version: version.Name, Kind: d.Spec.Names.Kind}] = text
		}
	}
	return out, nil
}

// group reports whether any kind is of an API group.
func (d *Definitions) group(group string) bool {
	for kind := range d.files {
		if kind.Group == group {
			return true
		}
	}
	return false
}

// Default fills the defaults of its kind into an object, in place. Of another group, or an unknown kind, it stays as it is.
func (d *Definitions) Default(kind schema.GroupVersionKind, object map[string]any) error {
	found, err := d.of(kind)
	if err == nil && found != nil {
		found.Default(object)
	}
	return err
}

// of returns the definition of a kind, nil when there is none.
func (d *Definitions) of(kind schema.GroupVersionKind) (*definition.Definition, error) {
	text, ok := d.files[kind]
	if !ok {
		return nil, nil
	}
	if d.read[kind] == nil {
		read, err := definition.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("reading the definition of %s: %w", kind, err)
		}
		d.read[kind] = read
	}
	return d.read[kind], nil
}
