// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheTestsThatPagesNameExist keeps "shown by" true.
func TestTheTestsThatPagesNameExist(t *testing.T) {
	defined, definition := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, dir := range []string{"api", "cmd", "internal", "test"} {
		err := filepath.WalkDir(filepath.Join("..", dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			data, err := os.ReadFile(path)
			for _, match := range definition.FindAllSubmatch(data, -1) {
				defined[string(match[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile("`(Test[A-Z]\\w+)`").FindAllSubmatch(data, -1) {
			if name := string(match[1]); !defined[name] {
				t.Errorf("%s names %s, which is no test", page, name)
			}
		}
	}
}
