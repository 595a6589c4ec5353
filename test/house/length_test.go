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

// maxLines is how long a file may be that people write. A longer one is about two things.
const maxLines = 400

func TestFilesAreShort(t *testing.T) {
	files := 0
	for _, dir := range []string{"api", "cmd", "dev", "docs", "images", "internal", "test"} {
		err := filepath.WalkDir(filepath.Join("..", "..", dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files++
			if lines := bytes.Count(text, []byte("\n")); lines > maxLines && !bytes.Contains(text, []byte("// Code generated")) {
				t.Errorf("%s has %d lines, more than %d: split it by what it is about", path, lines, maxLines)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 500 {
		t.Errorf("there are only %d files", files)
	}
}
