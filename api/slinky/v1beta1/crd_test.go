// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/yaml"
)

func TestAllKindsHaveADefinition(t *testing.T) {
	crds := loadCRDs(t)
	for _, kind := range []string{"Accounting", "Controller", "LoginSet", "NodeSet", "RestApi", "Token"} {
		if crds[kind] == nil {
			t.Errorf("config/crd/bases has no %s", kind)
		}
	}
	if len(crds) != 6 {
		t.Errorf("config/crd/bases has %d definitions of this group, want 6", len(crds))
	}
}

// The API server accepts the definitions: structure, defaults, rules that compile and the cost that it estimates.
func TestTheAPIServerAcceptsTheDefinitions(t *testing.T) {
	for kind, crd := range loadCRDs(t) {
		t.Run(kind, func(t *testing.T) {
			internal := crd.internal.DeepCopy()
			internal.Status.StoredVersions = []string{"v1beta1"}
			for _, err := range validation.ValidateCustomResourceDefinition(context.Background(), internal) {
				t.Error(err)
			}
		})
	}
}

// "kubectl apply" keeps the whole definition, as JSON, in an annotation, and annotations end at 256 KiB.
func TestDefinitionsFitIntoTheAnnotationOfKubectlApply(t *testing.T) {
	const limit = 256 << 10
	for kind, crd := range loadCRDs(t) {
		raw, err := yaml.YAMLToJSON(crd.written)
		if err != nil {
			t.Fatal(err)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, raw); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes", kind, compact.Len())
		if compact.Len() > limit/2 {
			t.Errorf("%s has %d bytes, more than half of what fits", kind, compact.Len())
		}
	}
}

// "kubectl explain" has something to say about each field.
func TestEveryFieldIsDescribed(t *testing.T) {
	for kind, crd := range loadCRDs(t) {
		schema := crd.internal.Spec.Validation
		if schema == nil {
			schema = crd.internal.Spec.Versions[0].Schema
		}
		for _, name := range []string{"spec", "status"} {
			property := schema.OpenAPIV3Schema.Properties[name]
			walkSchema(kind+"."+name, &property, func(path string, s *apiextensions.JSONSchemaProps) {
				if strings.TrimSpace(s.Description) == "" {
					t.Errorf("%s has no description", path)
				}
			})
		}
	}
}

// walkSchema visits the properties below a schema, in order.
func walkSchema(path string, s *apiextensions.JSONSchemaProps, visit func(string, *apiextensions.JSONSchemaProps)) {
	visit(path, s)
	for s.Items != nil && s.Items.Schema != nil {
		s, path = s.Items.Schema, path+"[]"
	}
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		property := s.Properties[name]
		walkSchema(path+"."+name, &property, visit)
	}
}

// "kubectl explain" does not show defaults, so the text of a field has to.
func TestDescriptionsNameTheDefault(t *testing.T) {
	for kind, crd := range loadCRDs(t) {
		spec := crd.internal.Spec.Validation.OpenAPIV3Schema.Properties["spec"]
		walkSchema(kind+".spec", &spec, func(path string, s *apiextensions.JSONSchemaProps) {
			if s.Default == nil || s.Type == "object" || *s.Default == "" {
				return
			}
			want := fmt.Sprintf("Default: %v", *s.Default)
			if text := strings.Join(strings.Fields(s.Description), " "); !strings.Contains(text, want) {
				t.Errorf("%s: the description does not say %q", path, want)
			}
		})
	}
}
