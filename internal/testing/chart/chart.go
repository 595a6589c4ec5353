// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart renders the charts of this repository as users do, by the helm that "make bin/helm" builds.
package chart

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/checkout"
)

// Missing returns an error with the way to get helm when bin/helm is not there, so that tests with charts are skipped.
func Missing() error {
	root, err := checkout.Dir()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(root, "bin", "helm")); err != nil {
		return fmt.Errorf("%w; build it with \"make bin/helm\"", err)
	}
	return nil
}

// Render returns what "helm template" makes of a chart in directory helm, for a release of the chart's name in a namespace. Without
// bin/helm the test is skipped; below make it fails.
func Render(t testing.TB, chart, namespace string, args ...string) []byte {
	t.Helper()
	if err := Missing(); err != nil {
		if apiserver.Required() {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	root, err := checkout.Dir()
	if err != nil {
		t.Fatal(err)
	}
	helm := filepath.Join(root, "bin", "helm")
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
