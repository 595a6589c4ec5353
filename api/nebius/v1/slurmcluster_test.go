// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"sigs.k8s.io/yaml"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	"github.com/coxswain-hpc/coxswain/internal/testing/crdcheck"
)

var update = flag.Bool("update", false, "rewrite golden files")

func slurmCluster(t testing.TB) *crdcheck.CRD {
	t.Helper()
	crd := crdcheck.Load(t, nebiusv1.GroupVersion.Group)["SlurmCluster"]
	if crd == nil {
		t.Fatal("helm/coxswain-crds/crd has no SlurmCluster")
	}
	return crd
}

func read(t testing.TB, path string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return crdcheck.Parse(t, string(text))
}

func TestTheAPIServerAcceptsTheDefinition(t *testing.T) {
	for _, problem := range slurmCluster(t).Problems(t.Context()) {
		t.Error(problem)
	}
}

// "kubectl apply" keeps the whole definition in an annotation, and annotations end at 256 KiB.
func TestTheDefinitionFitsIntoTheAnnotationOfKubectlApply(t *testing.T) {
	size := len(slurmCluster(t).JSON(t))
	t.Logf("%d bytes", size)
	if size > 160<<10 {
		t.Errorf("the definition has %d bytes, which leaves too little of 262144 for growth", size)
	}
}

func TestEveryFieldIsDescribed(t *testing.T) {
	for _, name := range []string{"spec", "status"} {
		property := slurmCluster(t).Schema.Properties[name]
		crdcheck.Walk(name, &property, func(path string, s *apiextensions.JSONSchemaProps) {
			if strings.TrimSpace(s.Description) == "" {
				t.Errorf("%s has no description", path)
			}
			if namesNoDefault(s) {
				t.Errorf("%s does not say that its default is %v", path, *s.Default)
			}
		})
	}
}

// namesNoDefault reports whether the text of a field keeps its default from users: "kubectl explain" shows only the text.
func namesNoDefault(s *apiextensions.JSONSchemaProps) bool {
	if s.Default == nil || s.Type == "object" || s.Type == "array" {
		return false
	}
	return *s.Default != "" && !strings.Contains(s.Description, "Default: ")
}

func TestNoFieldGetsLostInTheGoType(t *testing.T) {
	full := slurmCluster(t).Full()
	cluster := &nebiusv1.SlurmCluster{}
	crdcheck.Decode(t, full, cluster)
	if diff := cmp.Diff(full, crdcheck.Encode(t, cluster)); diff != "" {
		t.Errorf("written again, the object differs (-read +written):\n%s", diff)
	}
}

func TestADeepCopySharesNothing(t *testing.T) {
	cluster := &nebiusv1.SlurmCluster{}
	crdcheck.Decode(t, slurmCluster(t).Full(), cluster)
	before := crdcheck.Encode(t, cluster)
	copied := cluster.DeepCopy()
	crdcheck.Scribble(cluster)
	if diff := cmp.Diff(before, crdcheck.Encode(t, copied)); diff != "" {
		t.Errorf("a change of the original reached its copy (-want +got):\n%s", diff)
	}
}

func TestClustersOfBothGenerationsAreAccepted(t *testing.T) {
	for _, name := range []string{"minimal", "first_generation", "newest_generation"} {
		t.Run(name, func(t *testing.T) {
			object := read(t, "testdata/"+name+".yaml")
			written := crdcheck.Encode(t, object)
			for _, err := range slurmCluster(t).Create(t.Context(), object) {
				t.Error(err)
			}
			if path := lost("", written, object); path != "" {
				t.Errorf("%s is not kept as it was written", path)
			}
			once, twice := &nebiusv1.SlurmCluster{}, &nebiusv1.SlurmCluster{}
			crdcheck.Decode(t, object, once)
			again := crdcheck.Encode(t, once)
			slurmCluster(t).Default(again)
			crdcheck.Decode(t, again, twice)
			if diff := cmp.Diff(once, twice, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("read as its Go type and written again, the object differs (-first +then):\n%s", diff)
			}
		})
	}
}

// lost returns the path of something written that is not in an object with its defaults any more.
func lost(path string, written, got any) string {
	switch written := written.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return path
		}
		for key, value := range written {
			if path := lost(path+"."+key, value, object[key]); path != "" {
				return path
			}
		}
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(written) {
			return path
		}
		for i := range written {
			if path := lost(path+"[]", written[i], list[i]); path != "" {
				return path
			}
		}
	default:
		if !cmp.Equal(written, got) {
			return path
		}
	}
	return ""
}

func TestDefaultsOfTheMinimalCluster(t *testing.T) {
	const golden = "testdata/minimal.defaulted.yaml"
	object := read(t, "testdata/minimal.yaml")
	slurmCluster(t).Default(object)
	got, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		header := "# Copyright The Coxswain Authors.\n# SPDX-License-Identifier: Apache-2.0\n\n"
		if err := os.WriteFile(golden, append([]byte(header), got...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(read(t, golden), object); diff != "" {
		t.Errorf("defaults differ from %s (-want +got); -update rewrites it:\n%s", golden, diff)
	}
}
