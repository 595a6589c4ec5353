// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// byMunge makes a slurm.conf of a client that proves who it is by munge, from one that slurmctld has given.
const byMunge = `sed -e 's#^AuthType=.*#AuthType=auth/munge#' -e 's#^CredType=.*#CredType=cred/munge#' -e '/^AuthInfo=/d' -e '/^AuthAlt/d' `

// usesMunge submits a job with a client of munge, which slurmdbd answers as well. The job makes a credential of munge and reads it.
func (u *user) usesMunge(t *testing.T) {
	u.runs(t, byMunge+"/run/slurm/conf/slurm.conf >munge.conf")
	const client = "SLURM_CONF=$HOME/munge.conf "
	if got := u.runs(t, client+"scontrol show config | grep -c '^AuthType *= *auth/slurm'"); got != "1" {
		t.Errorf("slurmctld tells %q a client of munge", got)
	}
	job, err := strconv.Atoi(u.runs(t, client+"sbatch --parsable --output=$HOME/munge.out --wrap='test -S /run/munge/munge.socket.2 && echo munge is here'"))
	if err != nil {
		t.Fatal(err)
	}
	u.runs(t, client+"squeue")
	u.awaits(t, job, "COMPLETED")
	if got := u.runs(t, "cat munge.out"); got != "munge is here" {
		t.Errorf("the job printed %q", got)
	}
	eventually(t, soon, "slurmdbd to tell a client of munge of the job", func(ctx context.Context) error {
		out, err := u.Run(ctx, client+fmt.Sprintf("sacct --noheader --allocations --parsable2 --jobs=%d --format=State", job))
		if err != nil || strings.TrimSpace(out) != "COMPLETED" {
			return fmt.Errorf("sacct says %q: %w", out, err)
		}
		return nil
	})
}

// answersMunge asks the slurmctld of a SlurmCluster by munge, with the key that the operator has made, and looks for munged beside a
// worker.
func (s *scene) answersMunge(t *testing.T) {
	eventually(t, soon, "slurmctld to answer a client of munge", func(ctx context.Context) error {
		_, err := s.slurm(ctx, "sh", "-c", byMunge+"/etc/slurm/slurm.conf >/tmp/munge.conf && SLURM_CONF=/tmp/munge.conf squeue")
		return err
	})
	eventually(t, soon, "a job to find munged", func(ctx context.Context) error {
		_, err := s.slurm(ctx, "srun", "--immediate=5", "--nodelist=big-0", "test", "-S", "/run/munge/munge.socket.2")
		return err
	})
}
