// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package house

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// requirements returns the modules that a go.mod requires or replaces, with their versions.
func requirements(t *testing.T, dir string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(strings.TrimPrefix(line, "require "))
		if _, after, replaced := strings.Cut(line, "=>"); replaced {
			words = strings.Fields(after)
		}
		if len(words) > 1 && strings.HasPrefix(words[1], "v") {
			if before := out[words[0]]; before != "" && before != words[1] {
				t.Errorf("%s/go.mod requires %s at %s and %s", dir, words[0], before, words[1])
			}
			out[words[0]] = words[1]
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s/go.mod requires nothing", dir)
	}
	return out
}

// TestModulesHaveOneVersion checks that what the operator, the local Kubernetes and the tools have in common is compiled once:
// Go compiles a package anew for another version of it or of what it imports.
func TestModulesHaveOneVersion(t *testing.T) {
	product := requirements(t, ".")
	for _, dir := range []string{"dev", "tools"} {
		for module, version := range requirements(t, dir) {
			if ours := product[module]; ours != "" && ours != version {
				t.Errorf("%s is %s in go.mod and %s in %s/go.mod; take the newer one in both, then \"go mod tidy\"", module, ours, version, dir)
			}
		}
	}
	tools := requirements(t, "tools")
	for module, version := range requirements(t, "dev") {
		if other := tools[module]; strings.HasPrefix(module, "k8s.io/") && other != "" && other != version {
			t.Errorf("%s is %s in dev/go.mod and %s in tools/go.mod", module, version, other)
		}
	}
}
