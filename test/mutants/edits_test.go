// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// edit replaces a text, which is in the file exactly once.
type edit struct{ file, old, new string }

// apply puts the mutation into files, by their names, and returns why it cannot. What files lacks is read.
func (m mutation) apply(files map[string]string) error {
	for _, e := range m.edits {
		text, ok := files[e.file]
		if !ok {
			read, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return err
			}
			text = string(read)
		}
		if n := strings.Count(text, e.old); n != 1 {
			return fmt.Errorf("%s has %d times what the mutation replaces:\n%s", e.file, n, e.old)
		}
		files[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	return nil
}

// overlay writes mutated files and the list by which the go command takes them for the real ones.
func overlay(t *testing.T, files map[string]string) (list string) {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	for file, text := range files {
		original, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		replace[original] = filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(replace[original], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	list = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return list
}
