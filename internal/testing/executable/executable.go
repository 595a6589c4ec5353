// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package executable makes programs that tests run in place of others.
package executable

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Write writes an executable file and the directories above it. A test that cannot do so ends.
func Write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // of a test
		t.Fatal(err)
	}
	// A child that another test starts meanwhile has the file open, too, until it has become its own program, and the kernel executes no
	// file that is open for writing: "text file busy".
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte(text), 0o755) //nolint:gosec // to be executed
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
}
