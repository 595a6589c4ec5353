// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package crdcheck

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/runtime"
)

// Place is a property that an object has or may have.
type Place struct {
	// Path is the path of the property, such as "spec.users[].name".
	Path   string
	Schema *apiextensions.JSONSchemaProps
	// Parent is the object that holds it, and Name its key there.
	Parent map[string]any
	Name   string
	// Depth is the number of objects above it.
	Depth int
}

// Places returns the properties of a value by its schema, also those that are not set, in the order of their paths. Of a list
// and of a map they are those of the first item.
func Places(path string, value any, s *apiextensions.JSONSchemaProps, depth int) []Place {
	var out []Place
	switch value := value.(type) {
	case []any:
		if len(value) > 0 && s.Items != nil {
			return Places(path+"[]", value[0], s.Items.Schema, depth)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			property := s.Properties[name]
			out = append(out, Place{Path: path + "." + name, Schema: &property, Parent: value, Name: name, Depth: depth})
			out = append(out, Places(path+"."+name, value[name], &property, depth+1)...)
		}
		if s.AdditionalProperties != nil {
			for _, name := range slices.Sorted(maps.Keys(value)) {
				return append(out, Places(path+"{}", value[name], s.AdditionalProperties.Schema, depth)...)
			}
		}
	}
	return out
}

// Grow sets every property of an object's spec that is not set and that may be, in place.
func (c *CRD) Grow(ctx context.Context, object map[string]any) {
	spec := c.Schema.Properties["spec"]
	for grown := true; grown; {
		var missing []Place
		for _, place := range Places("spec", object["spec"], &spec, 0) {
			if _, there := place.Parent[place.Name]; !there {
				missing = append(missing, place)
			}
		}
		grown = c.set(ctx, object, missing)
	}
}

// set gives values to places, to as many at a time as the object is admitted with, since each look at an object takes long.
// It reports whether any got one.
func (c *CRD) set(ctx context.Context, object map[string]any, places []Place) bool {
	if len(places) == 1 {
		return c.setOne(ctx, object, places[0])
	}
	if len(places) == 0 {
		return false
	}
	var set []Place
	for _, place := range places {
		if values := candidates(place.Schema); len(values) > 0 {
			place.Parent[place.Name] = values[0]
			set = append(set, place)
		}
	}
	if len(set) > 0 && len(c.Create(ctx, runtime.DeepCopyJSON(object))) == 0 {
		return true
	}
	for _, place := range set {
		delete(place.Parent, place.Name)
	}
	half := len(places) / 2
	first := c.set(ctx, object, places[:half])
	return c.set(ctx, object, places[half:]) || first
}

func (c *CRD) setOne(ctx context.Context, object map[string]any, place Place) bool {
	for _, value := range candidates(place.Schema) {
		place.Parent[place.Name] = value
		if len(c.Create(ctx, runtime.DeepCopyJSON(object))) == 0 {
			return true
		}
		delete(place.Parent, place.Name)
	}
	return false
}

// LeaveOut sets null in place of the properties at a depth of an object's spec, in place, one after the other as far as the
// object is admitted without, and returns their paths.
func (c *CRD) LeaveOut(ctx context.Context, object map[string]any, depth int) []string {
	spec := c.Schema.Properties["spec"]
	var out []string
	for _, place := range Places("spec", object["spec"], &spec, 0) {
		if place.Depth != depth {
			continue
		}
		was, there := place.Parent[place.Name]
		// A create drops null, or puts the default in its place.
		place.Parent[place.Name] = nil
		if len(c.Create(ctx, runtime.DeepCopyJSON(object))) == 0 {
			out = append(out, place.Path)
		} else if delete(place.Parent, place.Name); there {
			place.Parent[place.Name] = was
		}
	}
	return out
}

// Null returns the paths of all properties of the spec that nothing needs: those that may be null, or get a default in its place,
// and those that may not.
func (c *CRD) Null() (allowed, refused []string) {
	spec := c.Schema.Properties["spec"]
	for _, place := range optional("spec", &spec) {
		if place.Schema.Nullable || place.Schema.Default != nil {
			allowed = append(allowed, place.Path)
		} else {
			refused = append(refused, place.Path)
		}
	}
	return allowed, refused
}

func optional(path string, s *apiextensions.JSONSchemaProps) []Place {
	var out []Place
	switch {
	case s.Items != nil:
		out = optional(path+"[]", s.Items.Schema)
	case s.AdditionalProperties != nil:
		out = optional(path+"{}", s.AdditionalProperties.Schema)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		if !slices.Contains(s.Required, name) {
			out = append(out, Place{Path: path + "." + name, Schema: &property})
		}
		out = append(out, optional(path+"."+name, &property)...)
	}
	return out
}

// Object returns an object of the kind without a spec.
func (c *CRD) Object() map[string]any {
	return map[string]any{
		"apiVersion": c.Internal.Spec.Group + "/" + c.Version(), "kind": c.Internal.Spec.Names.Kind, "metadata": map[string]any{"name": "it"},
	}
}

// candidates are values that a property might take.
func candidates(s *apiextensions.JSONSchemaProps) []any {
	var out []any
	for _, v := range s.Enum {
		out = append(out, v)
	}
	switch {
	case len(out) > 0:
	case s.XIntOrString:
		out = []any{int64(1), "1Gi"}
	case s.Type == "string":
		for text := range strings.FieldsSeq("text 60s 1m0s 10.0.0.0/8 /text info 1h yes 2026-01-02T03:04:05Z text.so a=b CPU * 10.0.0.1 1day Name=text root 1G") {
			out = append(out, text)
		}
	case s.Type == "integer":
		out = []any{int64(1), int64(30000), int64(600)}
	case s.Type == "boolean":
		out = []any{true, false}
	case s.Type == "array":
		for _, item := range candidates(s.Items.Schema) {
			out = append(out, []any{item})
		}
	case s.Type == "object" && s.AdditionalProperties != nil:
		for _, item := range candidates(s.AdditionalProperties.Schema) {
			out = append(out, map[string]any{"key": item})
		}
	case s.Type == "object":
		out = objects(s)
	}
	return out
}

// objects returns an object with what it needs, as far as that is of one form, and one for each property besides.
func objects(s *apiextensions.JSONSchemaProps) []any {
	needed := map[string]any{}
	for _, name := range s.Required {
		property := s.Properties[name]
		if values := candidates(&property); len(values) > 0 {
			needed[name] = values[0]
		}
	}
	out := []any{needed}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		for _, value := range candidates(&property) {
			more := maps.Clone(needed)
			more[name] = value
			out = append(out, more)
		}
	}
	return out
}
