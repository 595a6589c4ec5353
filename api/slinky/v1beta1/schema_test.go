// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

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
	"sigs.k8s.io/yaml"
)

// crd is one of our CustomResourceDefinitions, ready to treat objects as the API server treats them.
type crd struct {
	name       string
	written    []byte // as it is in config/crd/bases
	internal   *apiextensions.CustomResourceDefinition
	structural *structuralschema.Structural
	openapi    apiservervalidation.SchemaValidator
	rules      *cel.Validator
}

// loadCRDs returns the definitions of this group, by kind. Compiling their rules takes a while, so it is done once.
func loadCRDs(t testing.TB) map[string]*crd {
	t.Helper()
	crds, err := compiledCRDs()
	if err != nil {
		t.Fatal(err)
	}
	return crds
}

var compiledCRDs = sync.OnceValues(func() (map[string]*crd, error) {
	scheme := runtime.NewScheme()
	apiextensionsinstall.Install(scheme)
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()

	paths, err := filepath.Glob("../../../config/crd/bases/slinky.slurm.net_*.yaml")
	if err != nil {
		return nil, err
	}
	crds := map[string]*crd{}
	for _, path := range paths {
		written, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		object, _, err := decoder.Decode(written, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("decoding %s: %w", path, err)
		}
		v1 := object.(*apiextensionsv1.CustomResourceDefinition)
		scheme.Default(v1)
		internal := &apiextensions.CustomResourceDefinition{}
		if err := scheme.Convert(v1, internal, nil); err != nil {
			return nil, fmt.Errorf("converting %s: %w", path, err)
		}
		schema := internal.Spec.Versions[0].Schema
		if schema == nil {
			schema = internal.Spec.Validation
		}
		structural, err := structuralschema.NewStructural(schema.OpenAPIV3Schema)
		if err != nil {
			return nil, fmt.Errorf("reading the schema of %s: %w", path, err)
		}
		openapi, _, err := apiservervalidation.NewSchemaValidator(schema.OpenAPIV3Schema)
		if err != nil {
			return nil, fmt.Errorf("reading the schema of %s: %w", path, err)
		}
		crds[v1.Spec.Names.Kind] = &crd{
			name: v1.Name, written: written, internal: internal, structural: structural, openapi: openapi,
			rules: cel.NewValidator(structural, true, celconfig.PerCallLimit),
		}
	}
	return crds, nil
})

// admit does with an object what the API server does on create, or on update when old is given: it drops nulls and
// unknown fields, fills in defaults and checks schema and rules.
func (c *crd) admit(object, old map[string]any) field.ErrorList {
	c.prepare(object)
	ctx := context.Background()
	var errs field.ErrorList
	if old == nil {
		errs = apiservervalidation.ValidateCustomResource(nil, object, c.openapi)
	} else {
		c.prepare(old)
		errs = apiservervalidation.ValidateCustomResourceUpdate(nil, object, old, c.openapi)
	}
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, c.structural, object)...)
	if len(errs) > 0 {
		return errs // The API server does not evaluate rules on objects that break the schema either.
	}
	var oldObject any
	if old != nil {
		oldObject = old
	}
	errs, _ = c.rules.Validate(ctx, nil, c.structural, object, oldObject, celconfig.RuntimeCELCostBudget)
	return errs
}

func (c *crd) prepare(object map[string]any) {
	defaulting.PruneNonNullableNullsWithoutDefaults(object, c.structural)
	pruning.Prune(object, c.structural, true)
	defaulting.Default(object, c.structural)
}

// parse reads YAML as the API server reads an object: whole numbers are int64.
func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	object := map[string]any{}
	if err := decodeInts(raw, &object); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return object
}

func decodeInts(raw []byte, into *map[string]any) error {
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	*into = numbers(*into).(map[string]any)
	return nil
}

func numbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, _ := v.Float64()
		return f
	}
	return v
}
