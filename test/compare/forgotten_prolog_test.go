// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/test/realslurm"
)

// stuckInProlog is what squeue prints of a job that holds its node and does not begin.
const stuckInProlog = "RUNNING Prolog"

// TestWhatEditsDoToJobsThatStart is part of "make edits". It holds docs/users/edits.md to what it tells of a job that starts while slurmctld
// is asked to reconfigure.
func TestWhatEditsDoToJobsThatStart(t *testing.T) {
	for _, root := range realslurm.Roots(t) {
		for name, command := range map[string]string{"srun": "srun -n1 true", "salloc": "salloc -n1 true"} {
			t.Run(root.Release+" "+name, func(t *testing.T) {
				t.Parallel()
				b := realslurm.Start(t, root, "PrologFlags=Alloc")
				b.StartSlurmd("a", 16, "RealMemory=100")
				job := forgetProlog(t, b, command)
				states := func() string { return b.Run("squeue", "--noheader", "--format=%T %r", "--jobs="+job) }

				b.Run("scontrol", "reconfigure")
				// StopController would wait for salloc, which stays connected to slurmctld. Each look asks anew: one that reconfigures hands over to
				// a new process, which does not know that the old one was asked to end.
				b.Wait("slurmctld to end", func() bool { return b.Run("sh", "-c", "kill $(cat /run/slurmctld.pid) 2>&1 || true") != "" })
				b.StartController()
				b.Run("scontrol", "suspend", job)
				b.Run("scontrol", "resume", job)
				if out, err := b.Try("scontrol", "requeue", job); err == nil {
					t.Errorf("Slurm queues the job again: %s", out)
				}
				<-time.After(watched)
				if got := states(); got != stuckInProlog {
					t.Errorf("the job is %q after all that an administrator may try", got)
				}
				b.Run("scancel", job)
				b.Wait("the cancelled job to go", func() bool { return states() != stuckInProlog })
			})
		}
	}
}

// forgetProlog has slurmctld forget the prolog of a job, and returns its number. Which of them it is, is a matter of milliseconds.
func forgetProlog(t *testing.T, b *realslurm.Box, command string) (job string) {
	t.Helper()
	const attempts = 100
	ended := func() bool {
		_, err := os.Stat(b.Path("ended"))
		return err == nil
	}
	for i := range attempts {
		b.Run("sh", "-c", fmt.Sprintf("rm -f /mnt/ended; (%s; touch /mnt/ended) >/dev/null 2>&1 & sleep 0.%03d; scontrol reconfigure", command, i%8))
		b.Wait("the job to end or to be stuck", func() bool {
			for at := time.Now(); time.Since(at) < 3*time.Second; <-time.After(100 * time.Millisecond) {
				var ok bool
				if job, ok = strings.CutSuffix(b.Run("squeue", "--noheader", "--format=%i %T %r"), " "+stuckInProlog); !ok {
					job = ""
					return ended()
				}
			}
			return true
		})
		if job != "" {
			return job
		}
	}
	t.Fatalf("slurmctld has forgotten no prolog of %d jobs", attempts)
	return ""
}
