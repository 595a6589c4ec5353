// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package definition treats objects as the API server treats custom resources, without an API server: unknown fields are dropped,
// defaults are filled in, schema and CEL rules are checked.
package definition

import (
	"context"
	"fmt"

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
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Definition is a CustomResourceDefinition with one version.
type Definition struct {
	// Internal is the definition as the API server has it.
	Internal *apiextensions.CustomResourceDefinition
	// Schema is the schema of the version.
	Schema *apiextensions.JSONSchemaProps

	structural *structuralschema.Structural
	openapi    apiservervalidation.SchemaValidator
	rules      *cel.Validator
}

// Parse reads a definition in YAML or JSON.
func Parse(text []byte) (*Definition, error) {
	scheme := runtime.NewScheme()
	apiextensionsinstall.Install(scheme)
	v1 := &apiextensionsv1.CustomResourceDefinition{}
	if _, _, err := serializer.NewCodecFactory(scheme).UniversalDeserializer().Decode(text, nil, v1); err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	scheme.Default(v1)
	d := &Definition{Internal: &apiextensions.CustomResourceDefinition{}}
	if err := scheme.Convert(v1, d.Internal, nil); err != nil {
		return nil, fmt.Errorf("converting: %w", err)
	}
	validation, err := apiextensions.GetSchemaForVersion(d.Internal, d.Version())
	if err != nil {
		return nil, fmt.Errorf("finding the schema: %w", err)
	}
	d.Schema = validation.OpenAPIV3Schema
	if d.structural, err = structuralschema.NewStructural(d.Schema); err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	if d.openapi, _, err = apiservervalidation.NewSchemaValidator(d.Schema); err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	d.rules = cel.NewValidator(d.structural, true, celconfig.PerCallLimit)
	return d, nil
}

// Version returns the name of the version.
func (d *Definition) Version() string { return d.Internal.Spec.Versions[0].Name }

// Default drops the nulls and unknown fields of an object and fills in defaults, in place. It returns the paths of the unknown fields.
func (d *Definition) Default(object map[string]any) (unknown []string) {
	defaulting.PruneNonNullableNullsWithoutDefaults(object, d.structural)
	unknown = pruning.PruneWithOptions(object, d.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.Default(object, d.structural)
	return unknown
}

// Validate checks an object that has its defaults by schema and rules. old is the object whose place it takes; nil for one that is
// created.
func (d *Definition) Validate(ctx context.Context, object, old map[string]any) field.ErrorList {
	var errs field.ErrorList
	var before any // not a typed nil, which would be an old object to the rules
	if old == nil {
		errs = apiservervalidation.ValidateCustomResource(nil, object, d.openapi)
	} else {
		before = old
		errs = apiservervalidation.ValidateCustomResourceUpdate(nil, object, old, d.openapi)
	}
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, d.structural, object)...)
	if !blocksRules(errs) {
		broken, _ := d.rules.Validate(ctx, nil, d.structural, object, before, celconfig.RuntimeCELCostBudget)
		errs = append(errs, broken...)
	}
	return errs
}

// blocksRules reports whether the API server leaves the rules out because the object is too far from its schema.
func blocksRules(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type { //nolint:exhaustive // the API server's own list
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany,
			field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}
