// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func lookup(name string) string { return map[string]string{"JOB": "12", "HOME": "/home/a"}[name] }

func TestVariablesAreReadAsPeopleAndProgramsWriteThem(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		want []string
	}{
		"one a line":               {"A=1\nB=x y=z\n", []string{"A=1", "B=x y=z"}},
		"no end of the last line":  {"A=1\r\nB=", []string{"A=1", "B="}},
		"comments and other texts": {"# A=1\n\nhello\n=x\n1A=1\nA B=1\nA-B=1\n", nil},
		"quotes around values":     {"A=\"1 2\"\nB='3'\nC=\"\nD='x\"\nE=it's\n", []string{"A=1 2", "B=3", "C=\"", "D='x\"", "E=it's"}},
		"export":                   {"export A=1\n  export  B=2\nexport\n", []string{"A=1", "B=2"}},
		"variables of the job":     {"A=${HOME}/x:${NONE}:$JOB\nB=\"${JOB}\"\nC='${JOB}'\n", []string{"A=/home/a/x::$JOB", "B=12", "C=${JOB}"}},
		"no variables":             {"A=${JOB\nB=${}\nC=${a b}${JOB}\nD=$${JOB}\n", []string{"A=${JOB", "B=${}", "C=${a b}12", "D=$12"}},
		"a zero byte":              {"A=1\x002\nB=1\n", []string{"B=1"}},
	} {
		if diff := cmp.Diff(test.want, Environment(test.file, lookup)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestTheDirectoryOfAScriptIsWhereItChangesTo(t *testing.T) {
	for script, want := range map[string]string{
		"mkdir -p \"/w\" 2> /dev/null\ncd \"/w\" && unset OLDPWD || exit 1\nexec \"$@\"\n": "/w",
		"cd '/a b'\ncd /c": "/a b",
		"  cd /a;ls":       "/a",
		"cd /a/b":          "/a/b",
		"cd  /a\n":         "/a",
		"cd a":             "",
		"cd \"/a":          "",
		"cd $HOME\ncd /a":  "",
		"cd \"/$X\"":       "",
		"cd ":              "",
		"cdr /a":           "",
		"# cd /a\nls":      "",
		"":                 "",
	} {
		if got := WorkingDir(script); got != want {
			t.Errorf("%q: %q, want %q", script, got, want)
		}
	}
}

func FuzzEnvironment(f *testing.F) {
	f.Add("A=1\nexport B=\"${A}\"\n")
	f.Fuzz(func(t *testing.T, file string) {
		for _, variable := range Environment(file, func(string) string { return "" }) {
			name, _, ok := strings.Cut(variable, "=")
			if !ok || !isName(name) || strings.ContainsAny(variable, "\x00\n") {
				t.Errorf("%q has the variable %q", file, variable)
			}
		}
	})
}

func FuzzWorkingDir(f *testing.F) {
	f.Add("cd \"/w\" && unset OLDPWD || exit 1\n")
	f.Fuzz(func(t *testing.T, script string) {
		if dir := WorkingDir(script); dir != "" && (!path.IsAbs(dir) || strings.ContainsAny(dir, "\x00$")) {
			t.Errorf("%q changes to %q", script, dir)
		}
	})
}
