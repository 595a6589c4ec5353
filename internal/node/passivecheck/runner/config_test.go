// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck/machine"
	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck/runner"
)

func TestBothFormsOfTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := runner.Load(dir); err == nil || !strings.Contains(err.Error(), "has no *.json file") {
		t.Errorf("an empty directory: %v", err)
	}
	write("20-b.sh.json", `{"name": "b"}`)
	write("10-a.sh.json", `{"name": "a"}`)
	write("10-a.sh", "exit 0")
	write("30-c.sh.json", `{"name": "c", "contexts": "all"}`)
	checks, err := runner.Load(dir)
	if len(checks) != 2 || checks[0].Name != "a" || checks[1].Name != "b" || err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "30-c.sh.json")) {
		t.Errorf("%v, %v", checks, err)
	}
	write("list", `[{"name": "x"}, {"name": "y"}]`)
	if checks, err := runner.Load(filepath.Join(dir, "list")); err != nil || len(checks) != 2 {
		t.Errorf("%v, %v", checks, err)
	}
	if _, err := runner.Load(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "reading the configuration of checks") {
		t.Errorf("no file: %v", err)
	}
}

func TestTheRunnersLogGrowsAndBeginsAnew(t *testing.T) {
	n := newNode(t, "IDLE", "")
	m, err := machine.Open(machine.Options{Root: n.root, Jail: "/mnt/jail", Environment: n.environment})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	const inJail = "/mnt/jail/opt/soperator-outputs/slurm_scripts/log"
	add := func(file, text string) {
		t.Helper()
		log, err := runner.OpenLog(m, "/opt/soperator-outputs", file)
		if err != nil {
			t.Fatal(err)
		}
		_, err = log.WriteString(text)
		if err := log.Close(); err != nil {
			t.Error(err)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{inJail, "/var/log/runner"} {
		add(file, "a")
		add(file, "b")
		if got := n.read(file); got != "ab" {
			t.Errorf("%s has %q", file, got)
		}
	}
	add(inJail, strings.Repeat("x", 1<<20))
	add(inJail, "new")
	if got := n.read(inJail); got != "new" {
		t.Errorf("the log has %d bytes", len(got))
	}
	n.write("mnt/jail/etc/shadow", "precious")
	if err := os.Remove(n.path(inJail)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/shadow", n.path(inJail)); err != nil {
		t.Fatal(err)
	}
	add(inJail, "c")
	if n.read("mnt/jail/etc/shadow") != "precious" || n.read(inJail) != "c" {
		t.Error("a link was followed")
	}
}
