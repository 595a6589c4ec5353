// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package executable_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/testing/executable"
)

func TestProgramsRunWhileOthersAreWritten(t *testing.T) {
	for n := range 4 {
		t.Run(fmt.Sprintf("test %d of four", n), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "bin", "hello")
			for range 150 {
				executable.Write(t, path, "#!/bin/true\n")
				if out, err := exec.CommandContext(t.Context(), path).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
		})
	}
}
