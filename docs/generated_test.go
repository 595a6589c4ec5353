// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs holds the documentation. Its tests compare what they can with the code.
package docs

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the generated pages and parts of pages")

// begin stands before the generated part of a page. People write what is above.
const begin = "<!-- Below this line: go test ./docs -update -->\n"

// compare compares the generated part of a page with the code, or writes it.
func compare(t *testing.T, page, want string) {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, have, ok := strings.Cut(string(data), begin)
	if !ok {
		t.Fatalf("%s lacks the line %q", page, begin)
	}
	if *update {
		if err := os.WriteFile(page, []byte(head+begin+want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("%s is not what the code says; run 'go test ./docs -update' (-code +page):\n%s", page, diff)
	}
}

// goFiles calls back for every directory with Go files below some of the repository, with its path from the root.
func goFiles(t *testing.T, below []string, visit func(dir string, files []string)) {
	t.Helper()
	for _, start := range below {
		err := filepath.WalkDir(filepath.Join(root, start), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil || !d.IsDir():
				return err
			case d.Name() == "testdata":
				return filepath.SkipDir
			}
			files, err := filepath.Glob(filepath.Join(path, "*.go"))
			if err != nil || len(files) == 0 {
				return err
			}
			dir, err := filepath.Rel(root, path)
			visit(filepath.ToSlash(dir), slices.Sorted(slices.Values(files)))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
