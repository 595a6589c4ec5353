// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"context"
	"fmt"
	"io/fs"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsinstall "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	apiservervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-hpc/coxswain/config/crd"
)

// definitions are the files of the definitions of both API groups, by kind. A definition is read when an object needs it: its rules
// take long to compile.
type definitions struct {
	files map[schema.GroupVersionKind][]byte
	read  map[schema.GroupVersionKind]*definition
}

func newDefinitions() (*definitions, error) {
	out := &definitions{files: map[schema.GroupVersionKind][]byte{}, read: map[schema.GroupVersionKind]*definition{}}
	paths, err := fs.Glob(crd.Bases, "bases/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing the definitions: %w", err)
	}
	for _, path := range paths {
		text, err := crd.Bases.ReadFile(path)
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

// group says whether any kind is of an API group.
func (d *definitions) group(group string) bool {
	for kind := range d.files {
		if kind.Group == group {
			return true
		}
	}
	return false
}

// of is the definition of a kind, nil when there is none.
func (d *definitions) of(kind schema.GroupVersionKind) (*definition, error) {
	text, ok := d.files[kind]
	if !ok {
		return nil, nil
	}
	if d.read[kind] == nil {
		read, err := parseDefinition(text, kind.Version)
		if err != nil {
			return nil, fmt.Errorf("reading the definition of %s: %w", kind, err)
		}
		d.read[kind] = read
	}
	return d.read[kind], nil
}

// definition is a version of a CustomResourceDefinition.
type definition struct {
	structural *structuralschema.Structural
	openapi    apiservervalidation.SchemaValidator
	rules      *cel.Validator
}

func parseDefinition(text []byte, version string) (*definition, error) {
	scheme := runtime.NewScheme()
	apiextensionsinstall.Install(scheme)
	v1, internal := &apiextensionsv1.CustomResourceDefinition{}, &apiextensions.CustomResourceDefinition{}
	if _, _, err := serializer.NewCodecFactory(scheme).UniversalDeserializer().Decode(text, nil, v1); err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	scheme.Default(v1)
	if err := scheme.Convert(v1, internal, nil); err != nil {
		return nil, fmt.Errorf("converting: %w", err)
	}
	validation, err := apiextensions.GetSchemaForVersion(internal, version)
	if err != nil {
		return nil, fmt.Errorf("finding the schema: %w", err)
	}
	out := &definition{}
	if out.structural, err = structuralschema.NewStructural(validation.OpenAPIV3Schema); err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	if out.openapi, _, err = apiservervalidation.NewSchemaValidator(validation.OpenAPIV3Schema); err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	out.rules = cel.NewValidator(out.structural, true, celconfig.PerCallLimit)
	return out, nil
}

// create does with an object what the API server does when kubectl creates it: unknown fields are found, defaults filled in, in place,
// schema and rules checked.
func (d *definition) create(ctx context.Context, object map[string]any) (unknown []string, errs field.ErrorList) {
	defaulting.PruneNonNullableNullsWithoutDefaults(object, d.structural)
	unknown = pruning.PruneWithOptions(object, d.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.Default(object, d.structural)
	errs = apiservervalidation.ValidateCustomResource(nil, object, d.openapi)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, d.structural, object)...)
	if !blocksRules(errs) {
		broken, _ := d.rules.Validate(ctx, nil, d.structural, object, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, broken...)
	}
	return unknown, errs
}

// blocksRules says that an object is too far from its schema for the rules, as the API server sees it.
func blocksRules(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type { //nolint:exhaustive // the API server's own list
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}
