// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// module is the module this test is in.
const module = "../.."

func TestKeyFollowsWhatIsBuilt(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "cmd"), os.DirFS(filepath.Join(module, "cmd"))); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "internal"), os.DirFS(filepath.Join(module, "internal"))); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		b, err := os.ReadFile(filepath.Join(module, file))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, file), string(b))
	}
	key := func(goVersion string) string {
		t.Helper()
		k, err := Key(dir, goVersion)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	first := key("go1.26.0")
	if again, err := Key(module, "go1.26.0"); err != nil || again != first {
		t.Errorf("the same sources elsewhere have the keys %s and %s (%v)", first, again, err)
	}
	if key("go1.26.1") == first {
		t.Error("another compiler has the same key")
	}
	write(t, filepath.Join(dir, "cmd/localkube/extra.go"), "package main")
	write(t, filepath.Join(dir, "cmd/hyperkube/main_test.go"), "package main")
	if key("go1.26.0") != first {
		t.Error("localkube's own sources and tests change the key")
	}
	write(t, filepath.Join(dir, "cmd/hyperkube/extra.go"), "package main")
	if key("go1.26.0") == first {
		t.Error("another source file of hyperkube does not change the key")
	}
}

func TestFindSource(t *testing.T) {
	want, err := filepath.Abs(module)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{".", module, filepath.Join(module, "..")} {
		t.Run(dir, func(t *testing.T) {
			t.Chdir(dir)
			if got, err := FindSource(""); err != nil || got != want {
				t.Errorf("from %s: %s, %v, want %s", dir, got, err, want)
			}
		})
	}
	t.Chdir(t.TempDir())
	if got, err := FindSource(""); err == nil {
		t.Errorf("found %s in an empty directory", got)
	}
	if got, err := FindSource("/"); err == nil {
		t.Errorf("took %s for the sources", got)
	}
	if got, err := FindSource(want); err != nil || got != want {
		t.Errorf("given %s: %s, %v", want, got, err)
	}
}

func TestFlagsCarryTheVersion(t *testing.T) {
	version, err := kubernetesVersion(module)
	if err != nil || !strings.HasPrefix(version, "v1.") {
		t.Fatalf("the version is %q, %v", version, err)
	}
	all := strings.Join(flags("v1.36.3"), " ")
	for _, want := range []string{"base/version.gitVersion=v1.36.3 ", "client-go/pkg/version.gitMinor=36 ", "version.gitMajor=1 "} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in %s", want, all)
		}
	}
}

// What the operator and Kubernetes have in common is compiled once, when both are compiled with the same flags.
func TestFlagsAreThoseOfTheMakefile(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(module, "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	want := "\nOUR_GOFLAGS := " + strings.Join(compileFlags(), " ") + "\n"
	if !strings.Contains(string(makefile), want) {
		t.Errorf("the Makefile does not have %q", want)
	}
}

func TestPruneKeepsWhatIsUsedOrRecent(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	for name, age := range map[string]time.Duration{"used": 30, "recent": 3, "old": 8} {
		write(t, filepath.Join(dir, name, "complete"), "")
		then := now.Add(-age * 24 * time.Hour)
		if err := os.Chtimes(filepath.Join(dir, name), then, then); err != nil {
			t.Fatal(err)
		}
	}
	if err := Prune(dir, []string{filepath.Join(dir, "used")}, now); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || strings.Join(left, " ") != filepath.Join(dir, "recent")+" "+filepath.Join(dir, "used") {
		t.Errorf("left are %v, %v", left, err)
	}
	if err := Prune(filepath.Join(dir, "nothing"), nil, now); err != nil {
		t.Error(err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
