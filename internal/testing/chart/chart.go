// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart renders the charts of this repository as users do, by the helm that "make bin/helm" builds.
package chart

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/testing/checkout"
)

// Render returns what "helm template" makes of a chart in directory helm, for a release of the chart's name in a namespace. Without
// bin/helm the test fails and prints how to build it.
func Render(t testing.TB, chart, namespace string, args ...string) []byte {
	t.Helper()
	root, err := checkout.Dir()
	if err != nil {
		t.Fatal(err)
	}
	helm := filepath.Join(root, "bin", "helm")
	if _, err := os.Stat(helm); err != nil {
		t.Fatalf("%v; build it with make bin/helm", err)
	}
	all := append([]string{"template", chart, filepath.Join(root, "helm", chart), "--namespace", namespace}, args...)
	command := exec.CommandContext(t.Context(), helm, all...) //nolint:gosec // a program of this repository
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		t.Fatalf("rendering %s: %v: %s", chart, err, said.Bytes())
	}
	return out
}

// Documents returns the objects of a stream of YAML documents, without the empty ones.
func Documents(stream []byte) [][]byte {
	var out [][]byte
	for document := range bytes.SplitSeq(stream, []byte("\n---\n")) {
		if document = bytes.TrimPrefix(document, []byte("---\n")); len(bytes.TrimSpace(document)) > 0 {
			out = append(out, document)
		}
	}
	return out
}
