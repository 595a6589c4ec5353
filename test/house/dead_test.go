// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package house holds rules about the sources that no linter knows.
package house

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// module is the path of this module.
const module = "github.com/coxswain-hpc/coxswain"

// listed is what "go list" prints about a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	DepOnly                 bool
}

// list returns the packages that the product is made of, and what they import, with compiled export data.
func list(t *testing.T) []listed {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,DepOnly", "./cmd/...")
	command.Dir, command.Stderr = filepath.Join("..", ".."), os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("listing packages: %v", err)
	}
	var all []listed
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatalf("reading the list of packages: %v", err)
		}
		all = append(all, p)
	}
}

// sources are the packages of the product, type-checked without their tests.
type sources struct {
	fset *token.FileSet
	// methods are the exported methods of internal packages, by where they are declared; used those that something refers to.
	methods map[token.Pos]*types.Func
	used    map[token.Pos]bool
	// interfaces are all interfaces that the product can see; generic are the names of the methods of those with type parameters.
	interfaces []*types.Interface
	generic    map[string]bool
}

func (s *sources) check(t *testing.T, p listed, from types.Importer) *types.Package {
	t.Helper()
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(s.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	checked, err := (&types.Config{Importer: from}).Check(p.ImportPath, s.fset, files, info)
	if err != nil {
		t.Fatalf("type-checking %s: %v", p.ImportPath, err)
	}
	for _, object := range info.Defs {
		if f, ok := object.(*types.Func); ok && f.Exported() && f.Signature().Recv() != nil && !types.IsInterface(f.Signature().Recv().Type()) &&
			strings.HasPrefix(p.ImportPath, module+"/internal/") {
			s.methods[f.Pos()] = f
		}
	}
	for _, object := range info.Uses {
		if f, ok := object.(*types.Func); ok {
			s.used[f.Origin().Pos()] = true
		}
	}
	s.collect(checked)
	return checked
}

// collect records the interfaces of a package.
func (s *sources) collect(p *types.Package) {
	for _, name := range p.Scope().Names() {
		if object, ok := p.Scope().Lookup(name).(*types.TypeName); ok {
			i, ok := object.Type().Underlying().(*types.Interface)
			if !ok || i.NumMethods() == 0 {
				continue
			}
			if named, ok := object.Type().(*types.Named); ok && named.TypeParams().Len() > 0 {
				for method := range i.Methods() {
					s.generic[method.Name()] = true
				}
				continue
			}
			s.interfaces = append(s.interfaces, i)
		}
	}
}

// serves reports whether a method is there because an interface wants it.
func (s *sources) serves(f *types.Func) bool {
	if s.generic[f.Name()] {
		return true
	}
	receiver := f.Signature().Recv().Type()
	if _, ok := receiver.(*types.Pointer); !ok {
		receiver = types.NewPointer(receiver)
	}
	return slices.ContainsFunc(s.interfaces, func(i *types.Interface) bool {
		object, _, _ := types.LookupFieldOrMethod(i, false, f.Pkg(), f.Name())
		return object != nil && types.Implements(receiver, i)
	})
}

// deadcode, which "make lint" runs, takes every exported method for used whose type is somewhere turned into an interface, as by a
// call of fmt.Errorf. Here a method is used when the product names it, or when an interface that its type implements has it.
func TestEveryMethodIsUsed(t *testing.T) {
	s := &sources{
		fset: token.NewFileSet(), methods: map[token.Pos]*types.Func{}, used: map[token.Pos]bool{}, generic: map[string]bool{},
		interfaces: []*types.Interface{types.Universe.Lookup("error").Type().Underlying().(*types.Interface)},
	}
	exports, ours := map[string]string{}, map[string]*types.Package{}
	all := list(t)
	for _, p := range all {
		exports[p.ImportPath] = p.Export
	}
	compiled := importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	from := importerFunc(func(path string) (*types.Package, error) {
		if p, ok := ours[path]; ok {
			return p, nil
		}
		return compiled.Import(path)
	})
	foreign := map[*types.Package]bool{}
	for _, p := range all { // in the order of imports
		if !strings.HasPrefix(p.ImportPath, module) {
			continue
		}
		checked := s.check(t, p, from)
		ours[p.ImportPath] = checked
		for _, imported := range checked.Imports() {
			if !strings.HasPrefix(imported.Path(), module) && !foreign[imported] {
				foreign[imported] = true
				s.collect(imported)
			}
		}
	}
	if len(s.methods) < 100 || len(s.interfaces) < 100 {
		t.Fatalf("there are only %d methods and %d interfaces", len(s.methods), len(s.interfaces))
	}
	allowed, byName := maps.Clone(allowances), []string{"As", "Is", "Unwrap", "GoString", "IsBoolFlag"} // asked for by errors, fmt and flag
	for at, f := range s.methods {
		if s.used[at] || s.serves(f) || slices.Contains(byName, f.Name()) {
			continue
		}
		name := strings.ReplaceAll(f.FullName(), module+"/internal/", "")
		if _, ok := allowed[name]; ok {
			delete(allowed, name)
			continue
		}
		t.Errorf("%s: nothing in the product uses %s; delete it, or move it to the tests", s.fset.Position(at), name)
	}
	for name := range allowed {
		t.Errorf("%s is used, or gone: take it out of the allowances", name)
	}
}

// allowances are methods that only tests use, and why they stay.
var allowances = map[string]string{
	"(*slurm/slurmcache.Snapshot).WithJobs": "tests of what reads jobs make a snapshot with some",
	"(*slurm/rest.Client).Ping":             "which slurmctld answers, for tests of the fake one",
	"(*slurm/rest.Client).Version":          "which version of the API was chosen, for its tests",
	"(slurm/node.State).Equal":              "go-cmp compares states with it",
}

// importerFunc is a function that is a types.Importer.
type importerFunc func(path string) (*types.Package, error)

// Import implements types.Importer.
func (f importerFunc) Import(path string) (*types.Package, error) { return f(path) }
