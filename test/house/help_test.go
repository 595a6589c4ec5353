// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package house

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryProgramSaysWhatItIs checks the first words of --help, by which test/walk knows the programs in the images. That test
// builds the images and is the last of all.
func TestEveryProgramSaysWhatItIs(t *testing.T) {
	programs, err := filepath.Glob("../../cmd/*")
	if err != nil || len(programs) == 0 {
		t.Fatalf("there are no programs: %v", err)
	}
	for _, program := range programs {
		files, err := filepath.Glob(filepath.Join(program, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		first := "The Coxswain " + filepath.Base(program) + " "
		said := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			said = said || !strings.HasSuffix(file, "_test.go") && (strings.Contains(string(text), `"`+first) || strings.Contains(string(text), "`"+first))
		}
		if !said {
			t.Errorf("nothing in %s begins with %q: what does its --help say?", program, first)
		}
	}
}
