// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestThePageOfFieldsWithoutEffectNamesTheKindsThatNothingActsOn: its lists are compared with the code in internal/compose.
func TestThePageOfFieldsWithoutEffectNamesTheKindsThatNothingActsOn(t *testing.T) {
	find := func(file, pattern string) []string {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, match := range regexp.MustCompile(pattern).FindAllSubmatch(data, -1) {
			out = append(out, string(match[1]))
		}
		slices.Sort(out)
		return out
	}
	code := find("../internal/controller/nebius/notserved/notserved.go", `"(\w+)": +func\(\) reconcile\.Object`)
	code = slices.DeleteFunc(code, func(kind string) bool { return kind == "JailedConfig" }) // which sconfigcontroller serves in most namespaces
	page := find("users/without-effect.md", `## (\w+)\n\nNothing acts`)
	if diff := cmp.Diff(code, page); diff != "" || len(page) == 0 {
		t.Errorf("the kinds differ (-code +page):\n%s", diff)
	}
}
