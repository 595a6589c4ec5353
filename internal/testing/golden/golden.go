// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package golden compares what a test got with a file below testdata. With the flag -update the file is written instead;
// the difference is then to be read like any other change.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

//nolint:gochecknoglobals // a flag of the test binary
var update = flag.Bool("update", false, "rewrite the golden files below testdata")

// Check fails the test when testdata/<name> is not got.
func Check(t testing.TB, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path) //nolint:gosec // the tests name the files
	if err != nil {
		t.Fatalf("%v; write it with -update", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs from what it was (-was +is); rewrite it with -update if this is meant:\n%s", path, diff)
	}
}
