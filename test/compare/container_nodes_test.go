// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"testing"
)

// testTwoNodes tries steps of two nodes. The second one is there for them alone, so that all other jobs are on the first. No job comes after
// them: of one that slurmctld starts within milliseconds of the deletion of a node it forgets the prolog, and srun waits for ever.
func testTwoNodes(t *testing.T, s *site) {
	s.StartSlurmd("b", 16, "RealMemory=100")
	defer func() {
		s.Wait("node b to be idle", func() bool { return s.Run("sinfo", "--noheader", "--nodes=b", "--format=%T") == "idle" })
		s.StopSlurmd("b")
		s.Run("scontrol", "delete", "nodename=b")
	}()
	s.try(t, []trial{
		{
			name:   "a step has a container on each of its nodes",
			line:   `srun -N2 -n4 --container-image=$T sh -c 'echo $SLURMD_NODENAME $(readlink /proc/self/ns/mnt)' | sort -u | cut -d ' ' -f 1`,
			prints: "a\nb",
		},
		{
			name: "two images of a heterogeneous step are refused",
			line: `salloc -Q -N2 srun -N1 --container-image=$T cat /image : -N1 --container-image=$B cat /image`,
			says: []string{"srun: error: pyxis: --container-image specified multiple times"}, hides: []string{"lab/tools"}, code: 255,
		},
		{
			name: "one image of a heterogeneous step is that of all components",
			line: `salloc -Q -N2 srun -N1 --container-image=$T cat /image : -N1 cat /image
				salloc -Q -N2 srun -N1 cat /image : -N1 --container-image=$T cat /image`,
			prints: "lab/tools\nlab/tools\nlab/tools\nlab/tools",
		},
	})
}

// testTaskProlog has a script that needs files of the container.
func testTaskProlog(t *testing.T, s *site) {
	const script = `printf '#!/bin/sh\necho export FROM=$(cat /image)\n' >/mnt/out/prolog; chmod 755 /mnt/out/prolog; `
	s.try(t, []trial{
		{
			name:   "the script of --task-prolog runs in the container",
			line:   script + `srun --task-prolog=/mnt/out/prolog --container-mounts=/mnt/out,/usr --container-image=$T sh -c 'echo $FROM'`,
			prints: "lab/tools",
		},
		{
			name: "a script of --task-prolog that the container does not have ends the step",
			line: `srun --task-prolog=/mnt/out/prolog --container-image=$T sh -c 'echo never'`,
			says: []string{"error: --task-prolog failed"}, hides: []string{"never\n"}, code: 1,
		},
	})
	// Slurm 24.11 runs the script by slurmstepd, which it looks for in the container.
	bound := trial{
		name: "the script of --task-prolog runs without other files of the node",
		line: `srun --task-prolog=/mnt/out/prolog --container-mounts=/mnt/out --container-image=$T sh -c 'echo $FROM'`, prints: "lab/tools",
	}
	if s.release == "24.11" {
		bound = trial{
			name: "the script of --task-prolog does not run without slurmstepd", line: bound.line,
			says: []string{"error: --task-prolog failed status=127"}, code: 127,
		}
	}
	s.try(t, []trial{bound})
}
