// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crdcheck treats objects as the API server treats custom resources, without an API server: unknown fields are
// dropped, defaults are filled in, schema and CEL rules are checked. Tests of the API types use it for tables of good
// and bad objects, and tests of what is built on them for objects with their defaults.
package crdcheck

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsinstall "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
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
	"sigs.k8s.io/yaml"

	"github.com/coxswain-hpc/coxswain/internal/testing/checkout"
)

// CRD is one of the definitions in config/crd/bases. Each of them has one version.
type CRD struct {
	// Schema is the schema of the version.
	Schema *apiextensions.JSONSchemaProps

	written    []byte
	internal   *apiextensions.CustomResourceDefinition
	structural *structuralschema.Structural
	openapi    apiservervalidation.SchemaValidator
	rules      *cel.Validator
}

// Load reads the definitions of an API group, by kind.
func Load(t testing.TB, group string) map[string]*CRD {
	t.Helper()
	dir, err := bases()
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, group+"_*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Fatalf("no definitions of %s in %s", group, dir)
	}
	crds := map[string]*CRD{}
	for _, path := range paths {
		written, err := os.ReadFile(path) //nolint:gosec // a file of this repository
		if err != nil {
			t.Fatal(err)
		}
		crd, err := parseCRD(written)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		crds[crd.internal.Spec.Names.Kind] = crd
	}
	return crds
}

// bases returns the directory config/crd/bases of the repository that the test runs in.
func bases() (string, error) {
	dir, err := checkout.Dir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "config", "crd", "bases"), nil
}

func parseCRD(written []byte) (*CRD, error) {
	scheme := runtime.NewScheme()
	apiextensionsinstall.Install(scheme)
	v1 := &apiextensionsv1.CustomResourceDefinition{}
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	if _, _, err := decoder.Decode(written, nil, v1); err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	scheme.Default(v1)
	crd := &CRD{written: written, internal: &apiextensions.CustomResourceDefinition{}}
	if err := scheme.Convert(v1, crd.internal, nil); err != nil {
		return nil, fmt.Errorf("converting: %w", err)
	}
	validation, err := apiextensions.GetSchemaForVersion(crd.internal, crd.version())
	if err != nil {
		return nil, fmt.Errorf("finding the schema: %w", err)
	}
	crd.Schema = validation.OpenAPIV3Schema
	if crd.structural, err = structuralschema.NewStructural(crd.Schema); err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	if crd.openapi, _, err = apiservervalidation.NewSchemaValidator(crd.Schema); err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	crd.rules = cel.NewValidator(crd.structural, true, celconfig.PerCallLimit)
	return crd, nil
}

func (c *CRD) version() string { return c.internal.Spec.Versions[0].Name }

// Problems is what the API server has against the definition: its structure, its defaults, rules that do not compile or
// that it estimates to be too expensive.
func (c *CRD) Problems(ctx context.Context) field.ErrorList {
	internal := c.internal.DeepCopy()
	internal.Status.StoredVersions = []string{c.version()}
	return crdvalidation.ValidateCustomResourceDefinition(ctx, internal)
}

// Columns are what "kubectl get" prints, as "NAME path"; those that it prints with "-o wide" only are left out.
func (c *CRD) Columns() []string {
	columns := c.internal.Spec.AdditionalPrinterColumns // where conversion puts those of a single version
	if len(columns) == 0 {
		columns = c.internal.Spec.Versions[0].AdditionalPrinterColumns
	}
	var out []string
	for _, column := range columns {
		if column.Priority == 0 {
			out = append(out, column.Name+" "+column.JSONPath)
		}
	}
	return out
}

// JSON is the definition as client-side "kubectl apply" keeps it in an annotation. Annotations end at 256 KiB.
func (c *CRD) JSON(t testing.TB) []byte {
	t.Helper()
	raw, err := yaml.YAMLToJSON(c.written)
	if err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		t.Fatal(err)
	}
	return compact.Bytes()
}

// Default drops the nulls and unknown fields of an object and fills in defaults, in place.
func (c *CRD) Default(object map[string]any) {
	defaulting.PruneNonNullableNullsWithoutDefaults(object, c.structural)
	pruning.Prune(object, c.structural, true)
	defaulting.Default(object, c.structural)
}

// Create does with an object what the API server does when it is created: defaults, in place, then the checks. The
// errors are sorted by their text, since the API server's order changes from run to run.
func (c *CRD) Create(ctx context.Context, object map[string]any) field.ErrorList {
	c.Default(object)
	return c.check(ctx, object, nil, apiservervalidation.ValidateCustomResource(nil, object, c.openapi))
}

// Update does with an object what the API server does when it takes the place of old, like Create.
func (c *CRD) Update(ctx context.Context, object, old map[string]any) field.ErrorList {
	c.Default(object)
	c.Default(old)
	return c.check(ctx, object, old, apiservervalidation.ValidateCustomResourceUpdate(nil, object, old, c.openapi))
}

// check adds to what is against the schema what is against the rules. old is an untyped nil, or the object before.
func (c *CRD) check(ctx context.Context, object map[string]any, old any, errs field.ErrorList) field.ErrorList {
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, c.structural, object)...)
	if !blocksRules(errs) {
		broken, _ := c.rules.Validate(ctx, nil, c.structural, object, old, celconfig.RuntimeCELCostBudget)
		errs = append(errs, broken...)
	}
	slices.SortFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) })
	return errs
}

// blocksRules tells whether the API server leaves the rules out because the object is too far from its schema.
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

// Parse reads YAML as the API server reads an object: whole numbers are int64.
func Parse(t testing.TB, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	object := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return wholeNumbers(object).(map[string]any)
}

func wholeNumbers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key := range value {
			value[key] = wholeNumbers(value[key])
		}
	case []any:
		for i := range value {
			value[i] = wholeNumbers(value[i])
		}
	case json.Number:
		if whole, err := value.Int64(); err == nil {
			return whole
		}
		fraction, err := value.Float64()
		if err != nil {
			return value.String()
		}
		return fraction
	}
	return value
}
