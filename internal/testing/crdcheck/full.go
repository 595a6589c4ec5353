// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package crdcheck

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	kjson "sigs.k8s.io/json"
)

// Decode reads an object as its Go type. A field that the type does not have fails the test.
func Decode(t testing.TB, object map[string]any, into any) {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	strict, err := kjson.UnmarshalStrict(raw, into)
	if err := errors.Join(append(strict, err)...); err != nil {
		t.Fatal(err)
	}
}

// Encode writes a Go object as the API server would read it.
func Encode(t testing.TB, object any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return Parse(t, string(raw))
}

// Full makes an object that has every field of the schema, none of them empty. It is not valid: patterns, bounds and
// rules are ignored. It is for tests that no field gets lost in a Go type.
func (c *CRD) Full() map[string]any {
	object := fill(c.Schema).(map[string]any)
	object["apiVersion"] = c.Internal.Spec.Group + "/" + c.Version()
	object["kind"] = c.Internal.Spec.Names.Kind
	object["metadata"] = map[string]any{"name": "full"}
	return object
}

func fill(s *apiextensions.JSONSchemaProps) any {
	switch {
	case s.XIntOrString:
		return "1Gi"
	case s.Type == "string" && s.Format == "date-time":
		return "2026-01-02T03:04:05Z"
	case s.Type == "string" && strings.Contains(s.Pattern, "(ns|us|ms|s|m|h)"):
		return "1m0s"
	case s.Type == "string":
		return "text"
	case s.Type == "integer":
		return int64(7)
	case s.Type == "boolean":
		return true
	case s.Type == "array":
		return []any{fill(s.Items.Schema)}
	case s.Type == "object" && s.AdditionalProperties != nil:
		return map[string]any{"key": fill(s.AdditionalProperties.Schema)}
	case s.Type == "" && s.XPreserveUnknownFields != nil:
		return true
	}
	object := map[string]any{}
	for name, property := range s.Properties {
		object[name] = fill(&property)
	}
	if s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields {
		object["unknown"] = "kept"
	}
	return object
}

// Walk visits a schema and the properties below it, in order.
func Walk(path string, s *apiextensions.JSONSchemaProps, visit func(path string, s *apiextensions.JSONSchemaProps)) {
	visit(path, s)
	for s.Items != nil && s.Items.Schema != nil {
		s, path = s.Items.Schema, path+"[]"
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		Walk(path+"."+name, &property, visit)
	}
}
