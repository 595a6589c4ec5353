// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/test/realslurm"
)

// Tasks of an array that run have numbers of their own, and components of a heterogeneous job as well. Lists of states have the same
// numbers as lists of jobs.
func TestSlurmJobsHaveTheSameNumbersInListsOfStates(t *testing.T) {
	for _, root := range realslurm.Roots(t) {
		t.Run(root.Release, func(t *testing.T) {
			t.Parallel()
			s := original(t, root, "", true)
			s.Register(named("a"), named("b"))
			settled(t, s, "a", "b")
			for _, options := range []string{"--array=0-9%2 --mem=10", "--mem=10", "-c 1 --mem=10\n#SBATCH hetjob\n#SBATCH -c 1 --mem=10"} {
				if said, err := sbatch(s, "#!/bin/bash\n#SBATCH --output=/dev/null "+options+"\nsleep 600\n"); err != nil {
					t.Fatalf("sbatch %s says %s", options, said)
				}
			}
			apiserver.Eventually(t, func() error {
				jobs, err := s.client.Jobs(t.Context(), time.Time{})
				if err != nil {
					return err
				}
				states, err := s.client.JobStates(t.Context(), nil)
				if err != nil {
					return err
				}
				occupies := map[int64]bool{}
				for _, j := range states {
					occupies[j.ID] = occupies[j.ID] || rest.Occupies(j.State)
				}
				for _, j := range jobs.Jobs {
					if !occupies[j.ID] {
						return fmt.Errorf("job %d has nodes; the states are %v", j.ID, states)
					}
				}
				if len(jobs.Jobs) < 5 {
					return errors.New("not all of two tasks, a job and two components run yet")
				}
				return nil
			})
		})
	}
}
