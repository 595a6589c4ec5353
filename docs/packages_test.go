// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"go/doc"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// TestThePageOfPackagesIsThatOfThePackages compares contributors/packages.md with the first sentence of each package comment.
func TestThePageOfPackagesIsThatOfThePackages(t *testing.T) {
	var out strings.Builder
	for _, group := range []struct{ dir, title string }{
		{"api", "The API"}, {"cmd", "Programs"}, {"internal", "The operator"}, {"test", "Tests of the whole"},
	} {
		fmt.Fprintf(&out, "\n## %s\n\n| package | what it does |\n|---|---|\n", group.title)
		goFiles(t, []string{group.dir}, func(dir string, files []string) {
			text := packageText(t, dir, files)
			if text == "" && group.dir == "test" {
				return // tests of one kind, which their directory says
			}
			if text == "" {
				t.Errorf("%s has no package comment", dir)
			}
			fmt.Fprintf(&out, "| `%s` | %s |\n", dir, text)
		})
	}
	compare(t, "contributors/packages.md", out.String())
}

// packageText returns the first sentence of a package comment, without the words "Package name"; "" when there is none.
func packageText(t *testing.T, dir string, files []string) string {
	t.Helper()
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		if parsed.Doc == nil {
			continue
		}
		text := new(doc.Package).Synopsis(parsed.Doc.Text())
		name := "Package " + parsed.Name.Name + " "
		if parsed.Name.Name == "main" {
			name = "Command " + dir[strings.LastIndex(dir, "/")+1:] + " "
		}
		sentence, ok := strings.CutPrefix(text, name)
		if !ok {
			t.Errorf("the comment of %s begins with %q instead of %q", dir, text[:min(len(text), len(name))], name)
		}
		return escaped(strings.TrimSpace(sentence))
	}
	return ""
}
