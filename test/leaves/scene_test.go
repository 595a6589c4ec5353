// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package leaves_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// scene is the table of one kind, testdata/KIND.yaml.
type scene struct {
	// Plural names the kind's CRD.
	Plural string `json:"plural"`
	// Objects are the manifests of one scene; the first is the object whose spec is changed. $NAME is the scene's name.
	Objects []map[string]any `json:"objects"`
	// Leaves are how each leaf of the spec is changed, by its path.
	Leaves map[string]leaf `json:"leaves"`
}

// leaf is how one leaf is changed.
type leaf struct {
	// With are other fields of the spec that must be set for the leaf to matter, by path. Null removes one.
	With map[string]any `json:"with,omitempty"`
	// A and B are its values; a null A means that it is not set.
	A any `json:"a,omitempty"`
	B any `json:"b"`
	// Invalid is a value that is refused, at admission or by a condition.
	Invalid any `json:"invalid,omitempty"`
	// Fixed is true if the API server refuses to change A to B.
	Fixed bool `json:"fixed,omitempty"`
	// Told is the reason for which the change is not carried out but shown in a condition, with the way out.
	Told string `json:"told,omitempty"`
	// Acts is where a leaf acts that changes nothing that is rendered.
	Acts string `json:"acts,omitempty"`
	// Dead is the reason for which the leaf has no effect. Condition FieldsIgnored names it.
	Dead string `json:"dead,omitempty"`
}

// load reads the table of a kind.
func load(t *testing.T, kind string) scene {
	t.Helper()
	text, err := os.ReadFile("testdata/" + kind + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var s scene
	if err := yaml.UnmarshalStrict(text, &s); err != nil {
		t.Fatalf("reading the table of %s: %v", kind, err)
	}
	return s
}

// objects returns the manifests of the scene of one leaf with a value.
func (s scene) objects(t *testing.T, namespace, name, path string, value any) []*unstructured.Unstructured {
	t.Helper()
	text, err := yaml.Marshal(s.Objects)
	if err != nil {
		t.Fatal(err)
	}
	var contents []map[string]any
	if err := yaml.Unmarshal(bytes.ReplaceAll(text, []byte("$NAME"), []byte(name)), &contents); err != nil {
		t.Fatal(err)
	}
	out := make([]*unstructured.Unstructured, len(contents))
	for i, content := range contents {
		out[i] = &unstructured.Unstructured{Object: content}
		out[i].SetNamespace(namespace)
	}
	for at, v := range s.Leaves[path].With {
		set(t, out[0], at, named(v, namespace, name))
	}
	set(t, out[0], path, named(value, namespace, name))
	return out
}

// named puts the scene's namespace and name in place of $NAMESPACE and $NAME in a text.
func named(value any, namespace, name string) any {
	if text, ok := value.(string); ok {
		return strings.ReplaceAll(strings.ReplaceAll(text, "$NAMESPACE", namespace), "$NAME", name)
	}
	return value
}

// set sets a field of the spec, or removes it when value is nil.
func set(t *testing.T, obj *unstructured.Unstructured, path string, value any) {
	t.Helper()
	fields := append([]string{"spec"}, strings.Split(path, ".")...)
	if value == nil {
		unstructured.RemoveNestedField(obj.Object, fields...)
		return
	}
	if err := unstructured.SetNestedField(obj.Object, clean(value), fields...); err != nil {
		t.Fatalf("setting %s of %s: %v", path, obj.GetName(), err)
	}
}

// clean turns the numbers of YAML into those that unstructured objects hold.
func clean(value any) any {
	switch v := value.(type) {
	case float64:
		return int64(v)
	case map[string]any:
		out := map[string]any{}
		for key, item := range v {
			out[key] = clean(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = clean(item)
		}
		return out
	default:
		return value
	}
}

// sceneName returns the name of the n-th scene.
func sceneName(n int) string { return fmt.Sprintf("leaf-%03d", n) }
