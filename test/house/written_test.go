// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package house

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// written returns the Go files that people write, by path. What a program has written is not among them.
func written(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, dir := range []string{"api", "cmd", "dev", "docs", "images", "internal", "test"} {
		err := filepath.WalkDir(filepath.Join("..", "..", dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err == nil && !bytes.Contains(text, []byte("// Code generated")) {
				files[path] = text
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(files) < 500 {
		t.Fatalf("there are only %d files", len(files))
	}
	return files
}
