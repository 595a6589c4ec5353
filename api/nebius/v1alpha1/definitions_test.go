// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/testing/crdcheck"
)

var update = flag.Bool("update", false, "rewrite golden files")

var kinds = []string{"ActiveCheck", "JailedConfig", "NodeConfigurator", "NodeSet", "NodeSetPowerState"}

func load(t testing.TB, kind string) *crdcheck.CRD {
	t.Helper()
	crd := crdcheck.Load(t, v1alpha1.GroupVersion.Group)[kind]
	if crd == nil {
		t.Fatalf("helm/coxswain-crds/crd has no %s", kind)
	}
	return crd
}

func forEachKind(t *testing.T, test func(t *testing.T, kind string, crd *crdcheck.CRD)) {
	t.Helper()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) { test(t, kind, load(t, kind)) })
	}
}

func newObject(t testing.TB, kind string) runtime.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	object, err := scheme.New(v1alpha1.GroupVersion.WithKind(kind))
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func TestTheAPIServerAcceptsTheDefinitions(t *testing.T) {
	forEachKind(t, func(t *testing.T, _ string, crd *crdcheck.CRD) {
		for _, problem := range crd.Problems(t.Context()) {
			t.Error(problem)
		}
	})
}

// "kubectl apply" keeps the whole definition in an annotation, and annotations end at 256 KiB.
func TestTheDefinitionsFitIntoTheAnnotationOfKubectlApply(t *testing.T) {
	forEachKind(t, func(t *testing.T, _ string, crd *crdcheck.CRD) {
		size := len(crd.JSON(t))
		t.Logf("%d bytes", size)
		if size > 64<<10 {
			t.Errorf("the definition has %d bytes; it should spell out fewer core types", size)
		}
	})
}

func TestEveryFieldIsDescribed(t *testing.T) {
	forEachKind(t, func(t *testing.T, _ string, crd *crdcheck.CRD) {
		for _, name := range []string{"spec", "status"} {
			property := crd.Schema.Properties[name]
			crdcheck.Walk(name, &property, func(path string, s *apiextensions.JSONSchemaProps) {
				if strings.TrimSpace(s.Description) == "" {
					t.Errorf("%s has no description", path)
				}
				if namesNoDefault(s) {
					t.Errorf("%s does not say that its default is %v", path, *s.Default)
				}
			})
		}
	})
}

// namesNoDefault reports whether the text of a field keeps its default from users: "kubectl explain" shows only the text.
func namesNoDefault(s *apiextensions.JSONSchemaProps) bool {
	if s.Default == nil || s.Type == "object" || s.Type == "array" {
		return false
	}
	return *s.Default != "" && !strings.Contains(s.Description, "Default: ")
}

func TestNoFieldGetsLostInTheGoTypes(t *testing.T) {
	forEachKind(t, func(t *testing.T, kind string, crd *crdcheck.CRD) {
		full, object := crd.Full(), newObject(t, kind)
		crdcheck.Decode(t, full, object)
		if diff := cmp.Diff(full, crdcheck.Encode(t, object)); diff != "" {
			t.Errorf("written again, the object differs (-read +written):\n%s", diff)
		}
	})
}

func TestADeepCopySharesNothing(t *testing.T) {
	forEachKind(t, func(t *testing.T, kind string, crd *crdcheck.CRD) {
		object := newObject(t, kind)
		crdcheck.Decode(t, crd.Full(), object)
		before := crdcheck.Encode(t, object)
		copied := object.DeepCopyObject()
		crdcheck.Scribble(object)
		if diff := cmp.Diff(before, crdcheck.Encode(t, copied)); diff != "" {
			t.Errorf("a change of the original reached its copy (-want +got):\n%s", diff)
		}
	})
}

func TestDefaultsOfAMinimalNodeSet(t *testing.T) {
	const golden = "testdata/nodeset.defaulted.yaml"
	object := map[string]any{
		"apiVersion": "slurm.nebius.ai/v1alpha1", "kind": "NodeSet",
		"metadata": map[string]any{"name": "h100"},
		"spec":     map[string]any{"clusterName": "demo"},
	}
	for _, err := range load(t, "NodeSet").Create(t.Context(), object) {
		t.Error(err)
	}
	if *update {
		got, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		header := "# Copyright The Coxswain Authors.\n# SPDX-License-Identifier: Apache-2.0\n\n"
		if err := os.WriteFile(golden, append([]byte(header), got...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(crdcheck.Parse(t, string(text)), object); diff != "" {
		t.Errorf("defaults differ from %s (-want +got); -update rewrites it:\n%s", golden, diff)
	}
}
