// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// navigation lists the pages of mkdocs.yml.
func navigation(entry any) []string {
	switch entry := entry.(type) {
	case string:
		return []string{entry}
	case []any:
		var out []string
		for _, e := range entry {
			out = append(out, navigation(e)...)
		}
		return out
	case map[string]any:
		var out []string
		for _, e := range entry {
			out = append(out, navigation(e)...)
		}
		return out
	}
	return nil
}

func TestEveryPageIsInTheNavigation(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "mkdocs.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var site struct {
		Nav []any `json:"nav"`
	}
	if err := yaml.Unmarshal(text, &site); err != nil {
		t.Fatal(err)
	}
	want := []string{"CONTRIBUTING.md", "README.md", "dev/README.md", "images/README.md"}
	for path := range pages(t) {
		if strings.HasPrefix(path, "docs/") {
			want = append(want, path)
		}
	}
	have := navigation(site.Nav)
	slices.Sort(want)
	slices.Sort(have)
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("the navigation of mkdocs.yml is not what there is (-pages +navigation):\n%s", diff)
	}
}
