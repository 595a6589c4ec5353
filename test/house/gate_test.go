// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/testing/executable"
)

// gated is a repository whose make passes, fails and reports as its stages are called.
type gated struct{ dir, cache string }

// newGated returns a repository with one commit, the scripts of the gate, and a make of its own on the PATH.
func newGated(t *testing.T) gated {
	t.Helper()
	g := gated{dir: t.TempDir(), cache: t.TempDir()}
	for _, script := range []string{"gate", "failures"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "hack", script))
		if err != nil {
			t.Fatal(err)
		}
		g.write(t, filepath.Join("hack", script), string(text))
	}
	// It is called as "make --no-print-directory STAGE".
	g.write(t, "bin/make", `#!/bin/sh
echo "$2 speaks"
case $2 in
waits-for-*) other=${2#waits-for-}; while [ ! -e "out/gate/$other.result" ]; do sleep 0.01; done ;;
breaks-without-a-test) exit 2 ;;
breaks) printf -- '=== RUN   TestA\n    a_test.go:1: one is not two\n--- FAIL: TestA (0.00s)\n'; exit 2 ;;
esac
`)
	g.write(t, ".gitignore", "out/\n")
	for _, arguments := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "All"}} {
		g.git(t, arguments...)
	}
	return g
}

func (g gated) write(t *testing.T, name, text string) {
	t.Helper()
	executable.Write(t, filepath.Join(g.dir, name), text)
}

func (g gated) git(t *testing.T, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", arguments...)
	command.Dir = g.dir
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", arguments, err, out)
	}
	return strings.TrimSpace(string(out))
}

// run runs the gate, and returns what it printed, whether it passed, and its verdict on what is checked out.
func (g gated) run(t *testing.T, suffix string, lanes ...string) (out string, passed bool, verdict string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(g.dir, "hack", "gate"), lanes...)
	command.Env = append(os.Environ(), "PATH="+filepath.Join(g.dir, "bin")+":"+os.Getenv("PATH"), "XDG_CACHE_HOME="+g.cache)
	text, err := command.CombinedOutput()
	note, missing := os.ReadFile(filepath.Join(g.cache, "coxswain", "gate", g.git(t, "rev-parse", "HEAD")+suffix))
	if missing != nil {
		t.Fatalf("no verdict: %v\n%s", missing, text)
	}
	return string(text), err == nil, regexp.MustCompile(`\d+ s`).ReplaceAllString(strings.TrimSpace(string(note)), "N s")
}

func TestTheGateRunsItsLanesBesideEachOther(t *testing.T) {
	out, passed, verdict := newGated(t).run(t, "", "a waits-for-c", "c waits-for-a")
	if !passed || verdict != "only a waits-for-c c waits-for-a passed in N s" || !strings.Contains(out, "\n4 passed, 0 failed\n") {
		t.Errorf("passed: %v, verdict: %q\n%s", passed, verdict, out)
	}
}

func TestAStageThatFailsKeepsNoOtherFromRunning(t *testing.T) {
	g := newGated(t)
	out, passed, verdict := g.run(t, "", "breaks waits-for-c", "c")
	if passed || verdict != "only breaks waits-for-c c failed in N s: breaks" || !strings.Contains(out, "\n2 passed, 1 failed\n") {
		t.Errorf("passed: %v, verdict: %q\n%s", passed, verdict, out)
	}
	for _, want := range []string{"What the tests that failed said last:\nTestA:", "one is not two", "breaks speaks"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not print %q:\n%s", want, out)
		}
	}
	g.write(t, "hack/more", "not committed")
	if _, _, verdict := g.run(t, "+changes", "a"); verdict != "only a passed in N s" {
		t.Errorf("with a change that is not committed the verdict is %q", verdict)
	}
}

func TestAStageThatFailsWithoutATestIsToldAsWell(t *testing.T) {
	out, passed, verdict := newGated(t).run(t, "", "breaks-without-a-test")
	if passed || verdict != "only breaks-without-a-test failed in N s: breaks-without-a-test" || !strings.Contains(out, "breaks-without-a-test speaks") {
		t.Errorf("passed: %v, verdict: %q\n%s", passed, verdict, out)
	}
}

func TestARunThatWasInterruptedGoesOn(t *testing.T) {
	g := newGated(t)
	for _, test := range []struct{ suffix, want string }{
		{"", "a speaks,breaks speaks"},
		{"", "breaks speaks"},
		{"+changes", "a speaks,breaks speaks"},
		{"+changes", "a speaks,breaks speaks"},
	} {
		if test.suffix != "" {
			g.write(t, "hack/more", "not committed")
		}
		if _, passed, verdict := g.run(t, test.suffix, "-rest", "a breaks"); passed || verdict != "only a breaks failed in N s: breaks" {
			t.Errorf("passed: %v, verdict: %q", passed, verdict)
		}
		if ran := g.ran(t); ran != test.want {
			t.Errorf("%s was run, want %s", ran, test.want)
		}
	}
	g.git(t, "add", ".")
	g.git(t, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "More")
	g.run(t, "", "-rest", "a breaks")
	if ran := g.ran(t); ran != "a speaks,breaks speaks" {
		t.Errorf("on another commit %s was run", ran)
	}
	g.run(t, "", "a")
	if ran := g.ran(t); ran != "a speaks" {
		t.Errorf("a gate that is run whole ran %s", ran)
	}
}

// ran returns which stages the last gate has run, by what they wrote.
func (g gated) ran(t *testing.T) string {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(g.dir, "out", "gate", "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, log := range logs {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(text), "\n")
		out = append(out, first)
	}
	return strings.Join(out, ",")
}

// TestOthersRunTheStagesOfTheGate checks that the workflow for hosts of repositories, and the table for people, have every stage.
func TestOthersRunTheStagesOfTheGate(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var stages []string
	_, lanes, _ := strings.Cut(read("hack/gate"), "(programs) lanes=(\n")
	lanes, _, _ = strings.Cut(lanes, "\n)")
	for line := range strings.Lines(lanes) {
		stages = append(stages, strings.Fields(strings.Trim(strings.TrimSpace(line), `"`))...)
	}
	slices.Sort(stages)
	hosted := regexp.MustCompile(`(?m)^ +stage: \[(.*)\]$`).FindStringSubmatch(read(".github/workflows/gate.yml"))
	if len(stages) == 0 || hosted == nil {
		t.Fatalf("stages %q, workflow %q", stages, hosted)
	}
	if diff := cmp.Diff(stages, slices.Sorted(slices.Values(strings.Split(hosted[1], ", ")))); diff != "" {
		t.Errorf("stages of hack/gate and of .github/workflows/gate.yml (-gate +workflow):\n%s", diff)
	}
	contributing := read("CONTRIBUTING.md")
	for _, stage := range stages {
		if !strings.Contains(contributing, "| `make "+stage+"` |") {
			t.Errorf("the table of CONTRIBUTING.md has no row of `make %s`", stage)
		}
	}
}

// TestEveryTestWithARealSlurmIsCompared checks that "make compare", which alone sets where a real Slurm is, runs every package that asks
// for one.
func TestEveryTestWithARealSlurmIsCompared(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, _ := strings.Cut(string(makefile), "\ncompare: ")
	recipe, _, _ = strings.Cut(recipe, "\n\n")
	asks := 0
	for path, text := range written(t) {
		if !strings.HasSuffix(path, "_test.go") || !strings.Contains(string(text), "realslurm.Roots(") {
			continue
		}
		asks++
		dir := "./" + strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../../")
		if dir != "./test/house" && !slices.Contains(strings.Fields(recipe), dir) {
			t.Errorf("%s asks for a real Slurm, and make compare does not run %s", path, dir)
		}
	}
	if asks < 5 {
		t.Errorf("only %d files ask for a real Slurm", asks)
	}
}
