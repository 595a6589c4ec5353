// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// root is the root of the repository, as seen by the tests of this package.
const root = ".."

// page is a Markdown file with what links can lead to.
type page struct {
	links   []string
	anchors map[string]bool
}

var (
	fence    = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	code     = regexp.MustCompile("`[^`\n]+`")
	target   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#{1,6} +(.+)$`)
	textLink = regexp.MustCompile(`\[([^\]]+)\]\([^)]+\)`)
	noWord   = regexp.MustCompile(`[^\w\s-]`)
	spaces   = regexp.MustCompile(`[-\s]+`)
)

// read takes a page apart. An anchor counts when GitHub and MkDocs give it to the same heading: GitHub keeps each hyphen, MkDocs joins
// several, and the two number headings of the same words differently.
func read(text string) page {
	text = fence.ReplaceAllString(text, "")
	p := page{anchors: map[string]bool{}}
	for _, match := range target.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
		p.links = append(p.links, match[1])
	}
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		words := strings.ToLower(noWord.ReplaceAllString(textLink.ReplaceAllString(match[1], "$1"), ""))
		if github := strings.ReplaceAll(strings.TrimSpace(words), " ", "-"); github == spaces.ReplaceAllString(strings.TrimSpace(words), "-") {
			p.anchors[github] = true
		}
	}
	return p
}

// pages returns all Markdown files of the repository by their paths from its root.
func pages(t *testing.T) map[string]page {
	t.Helper()
	out := map[string]page{}
	walk(t, func(path string, text string) {
		if strings.HasSuffix(path, ".md") {
			out[path] = read(text)
		}
	})
	return out
}

// walk calls back for each file of the repository that people write, with its path from the root.
func walk(t *testing.T, visit func(path, text string)) {
	t.Helper()
	skip := []string{".git", "bin", "out", "testdata", "node_modules"}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(skip, d.Name()):
			return filepath.SkipDir
		case !d.Type().IsRegular() || !slices.Contains([]string{".md", ".go", ".yaml", ".yml", ".sh", ".tpl", ".txt", ""}, filepath.Ext(path)):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		visit(relative, string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// dead returns the links of a page that lead nowhere. Those to other sites are not followed: the tests need no network.
func dead(all map[string]page, path string) []string {
	var out []string
	for _, to := range all[path].links {
		u, err := url.Parse(to)
		if err != nil || u.Scheme == "http" {
			out = append(out, to)
			continue
		}
		if u.Scheme != "" {
			continue
		}
		file := path
		if u.Path != "" {
			file = filepath.Join(filepath.Dir(path), u.Path)
		}
		leads, isPage := all[file]
		if _, err := os.Stat(filepath.Join(root, file)); err != nil && !isPage || u.Fragment != "" && !leads.anchors[u.Fragment] {
			out = append(out, to)
		}
	}
	return out
}

func TestNoLinkIsDead(t *testing.T) {
	all, count := pages(t), 0
	for path, p := range all {
		count += len(p.links)
		for _, to := range dead(all, path) {
			t.Errorf("%s links to %s, which is not there (an anchor has to be the same on GitHub and in MkDocs)", path, to)
		}
	}
	if count < 100 {
		t.Errorf("only %d links were found", count)
	}
}

func TestDeadLinksAreFound(t *testing.T) {
	all := map[string]page{
		"docs/users/one.md": read("# One\n[a](two.md) [b](two.md#the-least) [c](#one) [d](three.md) [e](two.md#most) [f](#two)\n" +
			"[g](http://example.com) [h](https://example.com) [i](../../README.md) `[j](nowhere.md)`\n```\n[k](nowhere.md)\n```\n[l](two.md#twice--said)"),
		"docs/users/two.md": read("# Two\n## The `least`\n## Twice - said\n"),
	}
	want := []string{"three.md", "two.md#most", "#two", "http://example.com", "two.md#twice--said"}
	if diff := cmp.Diff(want, dead(all, "docs/users/one.md")); diff != "" {
		t.Errorf("the dead links differ (-want +have):\n%s", diff)
	}
}

// TestPagesThatFilesNameExist looks at comments, scripts and charts.
func TestPagesThatFilesNameExist(t *testing.T) {
	name, all, count := regexp.MustCompile(`(?:^|[\s("'\x60])(?:\.\./)*(docs/[\w/-]+\.md)(?:#([\w-]+))?`), pages(t), 0
	walk(t, func(path, text string) {
		if path == "docs/links_test.go" {
			return
		}
		for _, match := range name.FindAllStringSubmatch(text, -1) {
			count++
			if to, ok := all[match[1]]; !ok || match[2] != "" && !to.anchors[match[2]] {
				t.Errorf("%s names %s, which is not there", path, strings.TrimSpace(match[0]))
			}
		}
	})
	if count < 20 {
		t.Errorf("only %d were found", count)
	}
}
