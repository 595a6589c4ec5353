// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// word is a condition type or a reason.
type word struct {
	pkg, name, value, text string
}

// block is a group of them with the comment above.
type block struct {
	title     string
	constants []word
}

// section is a package of the API, with the words that a reader knows it by.
type section struct{ title, dir string }

func sections() []section {
	return []section{
		{"Controller, Accounting, RestApi, LoginSet, NodeSet, Token (slinky.slurm.net)", "api/slinky/v1beta1"},
		{"SlurmCluster (slurm.nebius.ai)", "api/nebius/v1"},
		{"NodeSet, ActiveCheck, NodeConfigurator and other kinds, and Kubernetes nodes (slurm.nebius.ai)", "api/nebius/v1alpha1"},
	}
}

// later are files with constants of kinds that this version does not act on yet; Soperator has them.
func later(file string) bool {
	return slices.Contains([]string{"jailedconfig.go", "nodesetpowerstate.go", "nodeconfigurator.go"}, filepath.Base(file))
}

// blocks reads the constants of a directory whose names begin with Condition, PodCondition or Reason.
func blocks(t *testing.T, dir string) []block {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var out []block
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || later(file) {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
				if b := blockOf(g, dir); len(b.constants) > 0 {
					out = append(out, b)
				}
			}
		}
	}
	return out
}

func blockOf(g *ast.GenDecl, dir string) block {
	b := block{title: sentence(g.Doc.Text())}
	for _, s := range g.Specs {
		v, ok := s.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 {
			continue
		}
		name := v.Names[0].Name
		literal, ok := v.Values[0].(*ast.BasicLit)
		if !ok || !strings.HasPrefix(name, "Condition") && !strings.HasPrefix(name, "PodCondition") && !strings.HasPrefix(name, "Reason") {
			continue
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			continue
		}
		text := v.Doc.Text()
		if text == "" {
			text = g.Doc.Text() // a constant by itself
			b.title = ""
		}
		b.constants = append(b.constants, word{pkg: dir, name: name, value: value, text: strings.Join(strings.Fields(strings.TrimPrefix(text, name)), " ")})
	}
	return b
}

// sentence returns the first sentence of a comment on one line.
func sentence(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if first, _, ok := strings.Cut(text, ". "); ok {
		text = first
	}
	return strings.TrimSuffix(text, ".")
}

// generate returns the generated part of conditions.md.
func generate(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, s := range sections() {
		all := blocks(t, s.dir)
		words := map[string]string{}
		for _, bl := range all {
			for _, c := range bl.constants {
				words[c.name] = c.value
			}
		}
		fmt.Fprintf(&b, "\n## %s\n", s.title)
		for _, bl := range all {
			heading := bl.title
			if heading == "" {
				heading = "Further words"
			}
			fmt.Fprintf(&b, "\n### %s\n\n| word | meaning |\n|---|---|\n", readable(heading, words))
			for _, c := range bl.constants {
				text := strings.TrimPrefix(strings.TrimPrefix(readable(c.text, words), ","), ":")
				fmt.Fprintf(&b, "| `%s` | %s |\n", c.value, strings.ReplaceAll(strings.TrimSpace(text), "|", "\\|"))
			}
		}
	}
	return b.String()
}

// readable replaces the names of constants by the words that they stand for, longer names first.
func readable(text string, words map[string]string) string {
	names := make([]string, 0, len(words))
	for name := range words {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	for _, name := range names {
		text = strings.ReplaceAll(text, name, "`"+words[name]+"`")
	}
	return text
}

func TestEveryConditionAndReasonIsDocumented(t *testing.T) {
	compare(t, "users/conditions.md", generate(t))
}

// product calls back for every file of the product, without tests, and with its path from the root.
func product(t *testing.T, visit func(path string, file *ast.File)) {
	t.Helper()
	for _, root := range []string{"api", "cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join("..", root), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
				strings.Contains(path, "internal/testing") || bytes.HasPrefix([]byte(d.Name()), []byte("zz_")) {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err == nil {
				visit(strings.TrimPrefix(path, "../"), file)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestEveryConditionAndReasonIsWrittenBySomebody(t *testing.T) {
	used := map[string]bool{} // package directory and name, or a literal value in quotes
	product(t, func(path string, file *ast.File) {
		imports := map[string]string{}
		for _, i := range file.Imports {
			full, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				continue
			}
			name := filepath.Base(full)
			if i.Name != nil {
				name = i.Name.Name
			}
			imports[name] = strings.TrimPrefix(full, "github.com/coxswain-hpc/coxswain/")
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok {
					used[imports[x.Name]+"."+n.Sel.Name] = true
				}
			case *ast.BasicLit:
				if n.Kind == token.STRING && !strings.HasPrefix(path, "api/") {
					used[n.Value] = true
				}
			}
			return true
		})
	})
	for _, s := range sections() {
		for _, b := range blocks(t, s.dir) {
			for _, c := range b.constants {
				if !used[c.pkg+"."+c.name] && !used[strconv.Quote(c.value)] {
					t.Errorf("%s.%s (%q) is declared and nobody writes it: delete it, or write it", c.pkg, c.name, c.value)
				}
			}
		}
	}
}

func TestEveryReasonOutsideOfTheAPIIsOneOfIts(t *testing.T) {
	declared := map[string]bool{}
	for _, s := range sections() {
		for _, b := range blocks(t, s.dir) {
			for _, c := range b.constants {
				declared[c.value] = true
			}
		}
	}
	// Reasons of events, and the beginning of a type.
	elsewhere := []string{"PersistentVolumeClaimsKept", "SlurmNodeState"}
	product(t, func(path string, file *ast.File) {
		if strings.HasPrefix(path, "api/") {
			return
		}
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, c := range blockOf(g, path).constants {
				if !declared[c.value] && !slices.Contains(elsewhere, c.value) {
					t.Errorf("%s declares %s = %q, which is no constant of the API", path, c.name, c.value)
				}
			}
		}
	})
}
