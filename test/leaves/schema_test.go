// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package leaves_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// fields returns the paths of all leaves of a kind's spec, such as "service.port", in order, by its CRD. A list, a map and
// an embedded core type of Kubernetes are one leaf each.
func fields(t *testing.T, plural string) []string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("../../helm/coxswain-crds/crd/slinky.slurm.net_%s.yaml", plural))
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		t.Fatal(err)
	}
	var out []string
	walk(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"], "", &out)
	slices.Sort(out)
	return out
}

func walk(schema apiextensionsv1.JSONSchemaProps, path string, out *[]string) {
	raw := schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields
	if raw || len(schema.Properties) == 0 {
		*out = append(*out, strings.TrimPrefix(path, "."))
		return
	}
	for name, property := range schema.Properties {
		walk(property, path+"."+name, out)
	}
}
