// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package house

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// arrows has what each directory of internal/ imports of the others. A line is only above those that it names, so that there is no circle.
var arrows = []struct {
	from string
	to   string
}{
	{"testing", "health operator problem render slurm webhook workerpod"},
	{"cli", "compose reconcile render slurm webhook workerpod"},
	{"webhook", "compose controller operator problem reconcile render workerpod"},
	{"operator", "controller health kube observe reconcile render slurm"},
	{"controller", "compose health kube node problem reconcile render slurm workerpod"},
	{"reconcile", "compose kube observe problem render slurm workerpod"},
	{"observe", "slurm workerpod"},
	{"health", "problem slurm workerpod"},
	{"compose", "kube problem render slurm"},
	{"render", "kube problem slurm workerpod"},
	{"workerpod", "slurm"},
	{"node", "slurm"},
	{"kube", "problem"},
	{"problem", ""},
	{"slurm", ""},
}

func TestImportsRunOneWayAsTheTableHasThem(t *testing.T) {
	want, below := map[string]string{}, map[string]bool{}
	for _, line := range slices.Backward(arrows) {
		for to := range strings.FieldsSeq(line.to) {
			if !below[to] {
				t.Errorf("%s imports %s, which is not below it in the table", line.from, to)
			}
		}
		want[line.from], below[line.from] = line.to, true
	}
	got := map[string]string{}
	for from, to := range imported(t) {
		first, _, _ := strings.Cut(from, "/")
		others := strings.Fields(got[first])
		for _, one := range to {
			if name, _, _ := strings.Cut(one, "/"); name != first && !slices.Contains(others, name) {
				others = append(others, name)
			}
		}
		slices.Sort(others)
		got[first] = strings.Join(others, " ")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table (-) is not what the sources import (+):\n%s", diff)
	}
}

// TestADecisionIsImportedByItsControllerAlone leaves out the webhook, which asks what a decision would find wrong.
func TestADecisionIsImportedByItsControllerAlone(t *testing.T) {
	decisions := 0
	for from, to := range imported(t) {
		for _, one := range to {
			if !strings.HasPrefix(one, "controller/") || !strings.HasSuffix(one, "plan") {
				continue
			}
			decisions++
			if owner := path.Dir(one); from != owner && from != "webhook/validation" {
				t.Errorf("internal/%s imports %s: a decision is its controller's own", from, one)
			}
		}
	}
	if decisions < 5 {
		t.Errorf("%d imports of decisions were found", decisions)
	}
}

// imported returns which packages below internal/ each of them imports, tests aside. Paths are below internal/.
func imported(t *testing.T) map[string][]string {
	t.Helper()
	root := filepath.Join("..", "..", "internal")
	found := map[string]map[string]bool{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		source, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		from, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		from = filepath.ToSlash(from)
		if found[from] == nil {
			found[from] = map[string]bool{}
		}
		for _, spec := range source.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if to, ours := strings.CutPrefix(name, module+"/internal/"); ours {
				found[from][to] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("reading the sources: %v", err)
	}
	out := map[string][]string{}
	for from, to := range found {
		out[from] = slices.Sorted(maps.Keys(to))
	}
	return out
}
