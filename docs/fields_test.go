// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"regexp"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func TestThePageOfAKindSpeaksOfEveryFieldOfItsSpec(t *testing.T) {
	for plural, pages := range map[string][]string{
		"controllers": {"users/controller.md", "administrators/ha.md"}, "accountings": {"users/accounting.md"}, "restapis": {"users/restapi.md"},
		"loginsets": {"users/loginset.md"}, "tokens": {"users/token.md"}, "nodesets": {"users/nodeset.md", "users/workers.md", "users/worker-end.md"},
	} {
		var text []byte
		for _, page := range pages {
			content, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, content...)
		}
		definition, err := os.ReadFile("../helm/coxswain-crds/crd/slinky.slurm.net_" + plural + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(definition, &crd); err != nil {
			t.Fatal(err)
		}
		var missing []string
		for name := range crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties {
			if !regexp.MustCompile("`(spec\\.)?" + name + "\\b").Match(text) {
				missing = append(missing, name)
			}
		}
		slices.Sort(missing)
		if len(missing) > 0 {
			t.Errorf("%v say nothing about %v", pages, missing)
		}
	}
}
