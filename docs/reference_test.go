// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// kind is one kind of both API groups: its CRD, and the Go type that the CRD was made from.
type kind struct {
	crd     apiextensionsv1.CustomResourceDefinition
	version apiextensionsv1.CustomResourceDefinitionVersion
	goType  reflect.Type
}

func (k kind) name() string { return k.crd.Spec.Names.Kind }

// page returns the path of the page about the kind, from the directory of the documentation.
func (k kind) page() string {
	return filepath.Join("reference", k.crd.Spec.Group, strings.ToLower(k.name())+".md")
}

func kinds(t *testing.T) []kind {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{slinkyv1beta1.AddToScheme, nebiusv1.AddToScheme, nebiusv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(root, "helm/coxswain-crds/crd/*.yaml"))
	if err != nil || len(files) < 12 {
		t.Fatalf("CRDs: %v %v", files, err)
	}
	var out []kind
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			t.Fatal(err)
		}
		for _, version := range crd.Spec.Versions {
			object, err := scheme.New(schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind})
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, kind{crd: crd, version: version, goType: reflect.TypeOf(object)})
		}
	}
	return out
}

// field is a field of a kind with those below it.
type field struct {
	path, typ, fallback, text string
	rules                     []string
	below                     []field
}

// count returns how many rows a table of the field and those below it has.
func (f field) count() int {
	n := 1
	for _, b := range f.below {
		n += b.count()
	}
	return n
}

// fields returns the fields of an object, in the order of the Go type. Its name below the path is that in JSON.
func fields(t *testing.T, path string, object apiextensionsv1.JSONSchemaProps, goType reflect.Type) []field {
	t.Helper()
	var out []field
	seen := map[string]bool{"apiVersion": true, "kind": true, "metadata": path == ""}
	for f, owner := range jsonFields(goType) {
		name := jsonName(f)
		property, ok := object.Properties[name]
		if !ok || seen[name] {
			continue
		}
		seen[name] = true
		one := fieldOf(t, strings.TrimPrefix(path+"."+name, "."), property, f.Type)
		if strings.HasPrefix(owner, "k8s.io/") {
			one.text = first(one.text)
		}
		if one.fallback == "" && slices.Contains(object.Required, name) {
			one.fallback = "required"
		}
		out = append(out, one)
	}
	for name := range object.Properties {
		if !seen[name] {
			t.Errorf("%v has no field for %s.%s", goType, path, name)
		}
	}
	return out
}

// fieldOf describes a field by its schema and its Go type.
func fieldOf(t *testing.T, path string, property apiextensionsv1.JSONSchemaProps, goType reflect.Type) field {
	t.Helper()
	f := field{path: path}
	f.text, f.fallback = describe(property)
	for {
		for _, rule := range property.XValidations {
			f.rules = append(f.rules, rule.Message)
		}
		for goType.Kind() == reflect.Pointer {
			goType = goType.Elem()
		}
		name := kubernetes(goType)
		switch {
		case name != "":
			f.typ += name
		case property.Type == "array":
			f.typ, path = f.typ+"list of ", path+"[]"
			property, goType = *property.Items.Schema, goType.Elem()
			continue
		case property.AdditionalProperties != nil:
			f.typ, path = f.typ+"map of ", path+".*"
			property, goType = *property.AdditionalProperties.Schema, goType.Elem()
			continue
		case len(property.Properties) > 0:
			f.typ += "object"
			f.below = fields(t, path, property, goType)
		default:
			f.typ += property.Type
		}
		if more := limits(property); more != "" {
			f.text = strings.TrimSpace(f.text + ended(f.text) + more)
		}
		return f
	}
}

// kubernetes names the Kubernetes type that a field has, or is kept for as it is written; "" for a type of ours and for words and
// numbers. Such a type is not taken apart.
func kubernetes(goType reflect.Type) string {
	switch goType.String() {
	case "resource.Quantity":
		return "quantity"
	case "v1.Duration":
		return "duration"
	case "v1.Time":
		return "time"
	case "intstr.IntOrString":
		return "integer or string"
	case "embedded.Object":
		return "any object"
	}
	if decode, ok := reflect.PointerTo(goType).MethodByName("Decode"); ok {
		goType = decode.Type.Out(0)
		for goType.Kind() == reflect.Pointer || goType.Kind() == reflect.Slice {
			goType = goType.Elem()
		}
	}
	if goType.Kind() != reflect.Struct || !strings.HasPrefix(goType.PkgPath(), "k8s.io/") {
		return ""
	}
	version := filepath.Base(goType.PkgPath())
	return fmt.Sprintf("%s (%s/%s)", goType.Name(), filepath.Base(filepath.Dir(goType.PkgPath())), version)
}

// jsonFields returns the fields of a struct, with those of structs that are inlined in their place, and the package of each.
func jsonFields(goType reflect.Type) iter.Seq2[reflect.StructField, string] {
	return func(yield func(reflect.StructField, string) bool) {
		for goType.Kind() == reflect.Pointer {
			goType = goType.Elem()
		}
		for _, f := range reflect.VisibleFields(goType) {
			if f.Anonymous && jsonName(f) == "" || len(f.Index) > 1 && jsonName(goType.Field(f.Index[0])) != "" {
				continue
			}
			owner := goType
			if len(f.Index) > 1 {
				owner = goType.FieldByIndex(f.Index[:len(f.Index)-1]).Type
			}
			for owner.Kind() == reflect.Pointer {
				owner = owner.Elem()
			}
			if !yield(f, owner.PkgPath()) {
				return
			}
		}
	}
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// TestThePagesOfKindsAreThoseOfTheCRDs compares docs/reference with the CRDs; -update writes it anew.
func TestThePagesOfKindsAreThoseOfTheCRDs(t *testing.T) {
	idle, want := readWithoutEffect(t), map[string]bool{}
	for _, k := range kinds(t) {
		want[k.page()] = true
		text := referencePage(t, k, idle[k.name()])
		if *update {
			if err := os.MkdirAll(filepath.Dir(k.page()), 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(k.page(), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		have, err := os.ReadFile(k.page())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(text, string(have)); diff != "" {
			t.Errorf("%s is not what the CRD says; run 'go test ./docs -update' (-CRD +page):\n%s", k.page(), diff)
		}
	}
	have, err := filepath.Glob("reference/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range have {
		if !want[page] {
			t.Errorf("%s is about no kind; delete it", page)
		}
	}
}
