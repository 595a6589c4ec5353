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

// named matches the name of a test on a page.
var named = regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)`")

// TestTheTestsThatPagesNameExist keeps "shown by" true.
func TestTheTestsThatPagesNameExist(t *testing.T) {
	defined, definition := map[string]bool{}, regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	for _, dir := range []string{"api", "cmd", "docs", "internal", "test"} {
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
	pages, err := filepath.Glob("*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range named.FindAllSubmatch(data, -1) {
			if name := string(match[1]); !defined[name] {
				t.Errorf("%s names %s, which is no test", page, name)
			}
		}
	}
}

func TestEveryPromiseNamesATest(t *testing.T) {
	page, err := os.ReadFile("administrators/promises.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| promise ") {
			continue
		}
		rows++
		if !named.MatchString(line) && !strings.Contains(line, "`hack/check-") {
			t.Errorf("no test shows this: %s", line)
		}
	}
	if rows < 50 {
		t.Errorf("there are only %d promises", rows)
	}
}

// ofTheImages is what shows something with the images, by the name of its function.
var ofTheImages = regexp.MustCompile("`([a-z_]+)` in `images/test/run`")

// TestEveryFailureHasATest keeps each row of the table of what fails shown by something.
func TestEveryFailureHasATest(t *testing.T) {
	checks, err := os.ReadFile("../images/test/run")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("users/workers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| what happens | what becomes of jobs |")
	_, table, begun := strings.Cut(table, "|---|---|---|---|---|\n")
	table, _, ended := strings.Cut(table, "\n\n")
	if !found || !begun || !ended {
		t.Fatal("workers.md has no table of what fails")
	}
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(row, "| \n"), " | ")
		shown := cells[len(cells)-1]
		check := ofTheImages.FindStringSubmatch(shown)
		if !strings.Contains(shown, "`Test") && (check == nil || !strings.Contains(string(checks), `" `+check[1]+"\n")) {
			t.Errorf("no test shows what becomes of jobs when %s", cells[0])
		}
	}
}
