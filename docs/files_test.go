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

// TestFilesThatPagesNameExist looks at what stands in backquotes: paths from the root of the repository, and names of Go files.
func TestFilesThatPagesNameExist(t *testing.T) {
	names := map[string]bool{}
	for _, dir := range []string{"api", "cmd", "dev", "docs", "internal", "test"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
			names[filepath.Base(path)] = true
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	inRoot := regexp.MustCompile("`((?:api|cmd|config|dev|docs|hack|helm|images|internal|test|tools)/[\\w./-]+)`")
	goFile := regexp.MustCompile("`(\\w+\\.go)`")
	symbol := regexp.MustCompile(`\.[A-Z]\w*$`) // internal/slurm/node.Answer
	count := 0
	for page := range pages(t) {
		data, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		text := fence.ReplaceAllString(string(data), "")
		for _, match := range inRoot.FindAllStringSubmatch(text, -1) {
			count++
			path := symbol.ReplaceAllString(match[1], "")
			_, err := os.Stat(filepath.Join(root, path))
			if _, beside := os.Stat(filepath.Join(root, filepath.Dir(page), path)); err != nil && beside != nil {
				t.Errorf("%s names %s, which is not there", page, match[1])
			}
		}
		for _, match := range goFile.FindAllStringSubmatch(text, -1) {
			count++
			if !names[match[1]] {
				t.Errorf("%s names %s, and no file is called so", page, match[1])
			}
		}
	}
	if count < 100 {
		t.Errorf("only %d names were found", count)
	}
}

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
