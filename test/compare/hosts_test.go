// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/test/realslurm"
)

// TestSlurmctldLooksUpTheHostOfAnSrun shows why slurmctld has the names of workers and login pods in DNS (internal/render/login/hosts.go).
// slurmctld tells srun that its step is lost, and looks for srun by the name of srun's host. If the name does not resolve, slurmctld tries
// ten times, once a second.
func TestSlurmctldLooksUpTheHostOfAnSrun(t *testing.T) {
	for _, root := range realslurm.Roots(t) {
		for host, resolves := range map[string]bool{"nowhere-77": false, "localhost": true} {
			t.Run(root.Release+" "+host, func(t *testing.T) {
				t.Parallel()
				b := realslurm.Start(t, root, "SlurmctldDebug=debug2")
				b.StartSlurmd("a", 16, "RealMemory=100")
				b.Run("sbatch", "--wrap=sleep 1000")
				b.Wait("the job to run", func() bool { return b.Run("squeue", "--noheader", "--states=RUNNING", "--format=%i") == "1" })
				b.Run("sh", "-c", "unshare --uts sh -c 'hostname "+host+"; exec srun --jobid=1 --overlap sleep 1000' >/mnt/srun 2>&1 &")
				stepd := func(command ...string) bool {
					_, err := b.Try(append(command, "-f", "slurmstepd: .1.0")...)
					return err == nil
				}
				b.Wait("the step to run", func() bool { return stepd("pgrep") })
				b.StopSlurmd("a")
				b.Wait("the step to be gone", func() bool { return !stepd("pkill", "-KILL") })

				start := time.Now()
				b.StartSlurmd("a", 16, "RealMemory=100")
				b.Wait("slurmctld to tell srun of its step", func() bool { return strings.Contains(b.Logs(), "SRUN_STEP_MISSING") })
				if took := time.Since(start); !resolves && took < 9*time.Second {
					t.Errorf("slurmctld was held up for no more than %s", took)
				}
				if gaveUp := strings.Contains(b.Logs(), `Unable to resolve "`+host+`"`); gaveUp == resolves {
					t.Errorf("slurmctld did not resolve the name: %t, want %t", gaveUp, !resolves)
				}
			})
		}
	}
}
