// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package passivecheck

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// someBuiltins are the built-in checks of these tests.
func someBuiltins(name string) bool { return name == "boot_disk_full" }

func TestChecksAreReadInBothForms(t *testing.T) {
	plain := Check{
		Name: "noname", Command: "/usr/bin/true", Platforms: []string{"any"}, Contexts: []string{"any"}, NodeStates: []string{"any"},
		OnFail: "none", OnOK: "none", ReasonBase: "[node_problem] $name", ReasonAppendDetails: true, Log: "slurm_scripts/$worker.$name.$context.out",
	}
	disk := plain
	disk.Name, disk.Command, disk.Builtin = "disk", "", "boot_disk_full"
	disk.Platforms, disk.Contexts, disk.NodeStates = []string{"CPU", "8xH100"}, []string{"prolog", "hc_program"}, []string{"drain"}
	disk.SkipForCPUJobs, disk.SkipForPartialGPUJobs, disk.OnFail, disk.OnOK = true, true, "drain", "undrain"
	disk.ReasonBase, disk.ReasonAppendDetails, disk.RunInJail = "[user_problem] disk", false, true
	disk.Log, disk.NeedEnv = "a/b.out", []string{"CHECKS_NODE_REASON"}
	for _, test := range []struct {
		name, text string
		want       []Check
	}{
		{"a single check has the defaults", `{}`, []Check{plain}},
		{"each check of a list has the defaults", `[{}, {}]`, []Check{plain, plain}},
		{"an empty list has no checks", `[]`, nil},
		{"every field is read", `[{"name": "disk", "builtin": "boot_disk_full", "platforms": ["CPU", "8xH100"], "skip_for_cpu_jobs": true,
			"skip_for_partial_gpu_jobs": true, "contexts": ["prolog", "hc_program"], "node_states": ["drain"], "on_fail": "drain",
			"on_ok": "undrain", "reason_base": "[user_problem] disk", "reason_append_details": false, "run_in_jail": true,
			"log": "a/b.out", "need_env": ["CHECKS_NODE_REASON"]}]`, []Check{disk}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Parse([]byte(test.text), someBuiltins)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMistakesAreNamed(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"nothing at all", " \n", "it is empty"},
		{"no JSON", `checks`, "invalid character"},
		{"a list that does not end", `[{}`, "reading the list of checks"},
		{"something behind a check", `{} {}`, "something follows"},
		{"null in the place of a check", `[null]`, "it is null"},
		{"an unknown field", `{"context": ["prolog"]}`, `unknown field "context"`},
		{"a word in the place of a list", `{"contexts": "prolog"}`, "cannot unmarshal"},
		{"an unknown context", `{"contexts": ["prologue"]}`, `contexts: "prologue" is not known; write any, none, prolog`},
		{"no context", `{"contexts": []}`, "contexts is an empty list"},
		{"an unknown platform", `{"platforms": ["8xA100"]}`, `platforms: "8xA100" is not known`},
		{"no GPUs as a platform", `{"platforms": ["0xGPU"]}`, `"0xGPU" is not known`},
		{"an unknown state", `{"node_states": ["down"]}`, `node_states: "down" is not known`},
		{"an unknown reaction", `{"on_fail": "reboot"}`, `on_fail: "reboot" is not known`},
		{"the reaction of the other side", `{"on_ok": "drain"}`, `on_ok: "drain" is not known`},
		{"an unknown variable", `{"need_env": ["HOME"]}`, `need_env: check-runner does not know "HOME"`},
		{"an unknown built-in check", `{"builtin": "boot_disk"}`, `there is no built-in check "boot_disk"`},
		{"two things to run", `{"builtin": "boot_disk_full", "command": "x"}`, "both a command and a builtin"},
		{"a name with a slash", `{"name": "../x"}`, "cannot be part of a file's name"},
		{"a log that leaves the directory", `{"log": "../../etc/passwd"}`, "does not stay below"},
		{"a log with an absolute path", `{"log": "/etc/passwd"}`, "does not stay below"},
		{"an undrain of anybody's drain", `{"on_ok": "undrain", "reason_base": " "}`, "reason_base is empty"},
		{"the second check of a list", `[{}, {"name": "x", "on_fail": "?"}]`, "check 2 (x): on_fail"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse([]byte(test.text), someBuiltins)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
}

func TestAMistakeCostsNoOtherCheck(t *testing.T) {
	got, err := Parse([]byte(`[{"name": "a"}, {"name": "b", "on_fail": "?"}, {"name": "c"}]`), someBuiltins)
	if err == nil || len(got) != 2 || got[0].Name != "a" || got[1].Name != "c" {
		t.Errorf("%v, %v", got, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{`{}`, `[{"name":"a","contexts":["prolog"]}]`, `[null]`, `{"log":"a/../b"}`, `{"name":null,"platforms":["8xH100"]}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		checks, _ := Parse([]byte(text), someBuiltins)
		for _, c := range checks {
			if err := c.validate(someBuiltins); err != nil {
				t.Errorf("%q: a check with a mistake was taken: %v", text, err)
			}
			if reason := c.Reason(Prolog, text); strings.ContainsAny(reason, "\n\r\x00") || len([]rune(reason)) > node.MaxReason {
				t.Errorf("%q: the reason is %q", text, reason)
			}
		}
	})
}
