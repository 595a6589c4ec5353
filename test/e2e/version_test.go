// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-hpc/coxswain/test/walk"
)

// The operator that runs Slurm 26.05 also runs 24.11, the release of Debian trixie.
func TestSlurm2411(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	if s.Local {
		old := stage.images
		old.Suite = "trixie"
		if err := old.Load(t.Context(), stage.repository, walk.NewProgress(os.Stderr)); err != nil {
			t.Fatal(err)
		}
	}
	s.components(t, "version.yaml")
	alice := s.enterLoginSet(t, "old-login", "alice")
	for _, command := range []string{"scontrol show config | grep SLURM_VERSION", "srun --chdir=/ /usr/sbin/slurmd -V"} {
		if out := alice.runs(t, command); !strings.Contains(out, "24.11") {
			t.Errorf("%q printed %q, not 24.11", command, out)
		}
	}
	hosts := strings.Fields(alice.runs(t, "srun --chdir=/ --nodes=2 hostname"))
	slices.Sort(hosts)
	if !slices.Equal(hosts, []string{"old-node-0", "old-node-1"}) {
		t.Errorf("srun --nodes=2 hostname printed %v", hosts)
	}
}
