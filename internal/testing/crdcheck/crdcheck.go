// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crdcheck reads the definitions of this repository, and makes objects for them. Tests of the API types use it for tables of good
// and bad objects, and tests of what is built on them for objects with their defaults.
package crdcheck

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-hpc/coxswain/internal/testing/checkout"
	"github.com/coxswain-hpc/coxswain/internal/webhook/definition"
)

// CRD is one of the definitions in helm/coxswain-crds/crd. Each of them has one version.
type CRD struct {
	*definition.Definition
	written []byte
}

// Load reads the definitions of an API group, by kind.
func Load(t testing.TB, group string) map[string]*CRD {
	t.Helper()
	dir, err := definitions()
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
		read, err := definition.Parse(written)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		crds[read.Internal.Spec.Names.Kind] = &CRD{Definition: read, written: written}
	}
	return crds
}

// definitions returns the directory helm/coxswain-crds/crd of the repository that the test runs in.
func definitions() (string, error) {
	dir, err := checkout.Dir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "helm", "coxswain-crds", "crd"), nil
}

// Problems returns what the API server has against the definition: its structure, its defaults, rules that do not compile or
// that it estimates to be too expensive.
func (c *CRD) Problems(ctx context.Context) field.ErrorList {
	internal := c.Internal.DeepCopy()
	internal.Status.StoredVersions = []string{c.Version()}
	return crdvalidation.ValidateCustomResourceDefinition(ctx, internal)
}

// Columns returns what "kubectl get" prints, as "NAME path"; those that it prints with "-o wide" only are left out.
func (c *CRD) Columns() []string {
	columns := c.Internal.Spec.AdditionalPrinterColumns // where conversion puts those of a single version
	if len(columns) == 0 {
		columns = c.Internal.Spec.Versions[0].AdditionalPrinterColumns
	}
	var out []string
	for _, column := range columns {
		if column.Priority == 0 {
			out = append(out, column.Name+" "+column.JSONPath)
		}
	}
	return out
}

// JSON returns the definition as client-side "kubectl apply" keeps it in an annotation. Annotations end at 256 KiB.
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

// Create does with an object what the API server does when it is created: defaults, in place, then the checks. The
// errors are sorted by their text, since the API server's order changes from run to run.
func (c *CRD) Create(ctx context.Context, object map[string]any) field.ErrorList {
	c.Default(object)
	return sorted(c.Validate(ctx, object, nil))
}

// Update does with an object what the API server does when it takes the place of old, like Create.
func (c *CRD) Update(ctx context.Context, object, old map[string]any) field.ErrorList {
	c.Default(object)
	c.Default(old)
	return sorted(c.Validate(ctx, object, old))
}

func sorted(errs field.ErrorList) field.ErrorList {
	slices.SortFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) })
	return errs
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
