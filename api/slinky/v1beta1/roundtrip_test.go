// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/runtime"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/crdcheck"
)

// examples returns the objects in testdata.
func examples(t testing.TB) []map[string]any {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var objects []map[string]any
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			objects = append(objects, crdcheck.Parse(t, document))
		}
	}
	return objects
}

// typed reads an object as its Go type. A field that the type does not have fails the test.
func typed(t testing.TB, object map[string]any) runtime.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := slinkyv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	out, err := scheme.New(slinkyv1beta1.GroupVersion.WithKind(object["kind"].(string)))
	if err != nil {
		t.Fatal(err)
	}
	crdcheck.Decode(t, object, out)
	return out
}

func describe(object map[string]any) string {
	return object["kind"].(string) + " " + object["metadata"].(map[string]any)["name"].(string)
}

// What is written passes through API server and Go types without a loss, and a Go object passes back through the API
// server unchanged.
func TestExamplesSurviveTheRoundTrip(t *testing.T) {
	crds := loadCRDs(t)
	for _, object := range examples(t) {
		t.Run(describe(object), func(t *testing.T) {
			crd := crds[object["kind"].(string)]
			written := runtime.DeepCopyJSON(object)
			if errs := crd.Create(t.Context(), object); len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			requireContains(t, "", object, written)

			first := typed(t, object)
			again := crdcheck.Encode(t, first)
			if errs := crd.Create(t.Context(), again); len(errs) > 0 {
				t.Fatalf("the object as Go writes it is refused: %v", errs.ToAggregate())
			}
			if diff := cmp.Diff(first, typed(t, again)); diff != "" {
				t.Errorf("after the round trip (-before +after):\n%s", diff)
			}
		})
	}
}

// requireContains fails when something written is not in the object any more.
func requireContains(t *testing.T, path string, object, written any) {
	t.Helper()
	switch written := written.(type) {
	case map[string]any:
		object, ok := object.(map[string]any)
		if !ok {
			t.Errorf("%s is gone", path)
			return
		}
		for key, value := range written {
			requireContains(t, path+"."+key, object[key], value)
		}
	default:
		if list, ok := object.([]any); ok && len(list) > 0 {
			if _, ok := list[0].(map[string]any); ok {
				return // Items may have got defaults; that they are not lost shows in the typed comparison.
			}
		}
		if diff := cmp.Diff(written, object); diff != "" {
			t.Errorf("%s (-written +kept):\n%s", path, diff)
		}
	}
}

// testdata/all_fields.yaml has all fields, so the round trip covers every field that we declare.
func TestExamplesUseEveryField(t *testing.T) {
	used := map[string]bool{}
	for _, object := range examples(t) {
		collectPaths(object["kind"].(string), object, used)
	}
	unused := map[string]string{
		"Controller.spec.persistence.selector.matchExpressions":                "core type",
		"RestApi.spec.networkPolicy.from[].podSelector.matchExpressions":       "core type",
		"RestApi.spec.networkPolicy.from[].namespaceSelector.matchExpressions": "core type",
	}
	for kind, crd := range loadCRDs(t) {
		for _, name := range []string{"spec", "status"} {
			property := crd.Schema.Properties[name]
			crdcheck.Walk(kind+"."+name, &property, func(path string, _ *apiextensions.JSONSchemaProps) {
				for prefix := range unused {
					if strings.HasPrefix(path, prefix) {
						return
					}
				}
				if strings.Contains(path, ".conditions") || used[path] || coveredElsewhere(path, used) {
					return
				}
				t.Errorf("no example has %s", path)
			})
		}
	}
}

// coveredElsewhere is true for the fields of types that several kinds share, once one example has them.
func coveredElsewhere(path string, used map[string]bool) bool {
	for _, shared := range []string{
		".service.", ".template.", ".controllerRef.", ".optional", "Refs[].namespace", ".observedGeneration", "status",
	} {
		if i := strings.Index(path, shared); i >= 0 {
			for p := range used {
				if strings.HasSuffix(p, path[i:]) {
					return true
				}
			}
		}
	}
	return false
}

func collectPaths(path string, v any, used map[string]bool) {
	used[path] = true
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			collectPaths(path+"."+key, value, used)
		}
	case []any:
		for _, value := range v {
			collectPaths(path+"[]", value, used)
		}
	}
}

func TestDeepCopiesAreIndependent(t *testing.T) {
	for _, object := range examples(t) {
		t.Run(describe(object), func(t *testing.T) {
			original := typed(t, object)
			before, err := json.Marshal(original)
			if err != nil {
				t.Fatal(err)
			}
			copied := original.DeepCopyObject()
			if diff := cmp.Diff(original, copied); diff != "" {
				t.Errorf("the copy differs (-original +copy):\n%s", diff)
			}
			crdcheck.Scribble(copied)
			after, err := json.Marshal(original)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(before), string(after)); diff != "" {
				t.Errorf("writing to the copy changed the original:\n%s", diff)
			}
		})
	}
}
