// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/slurm/need"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/test/realslurm"
)

// The Slurm cache counts the jobs of a partition by slurmrestd's answer, and "kubectl slurm diff" by squeue's.
func TestTheJobsOfSlurmThatNeedAPartitionAreCounted(t *testing.T) {
	for _, root := range realslurm.Roots(t) {
		t.Run(root.Release, func(t *testing.T) {
			t.Parallel()
			c := &edited{t: t, box: realslurm.Start(t, root, editedConf), jobs: map[string]string{}}
			c.submitAll()
			c.jobs["array task that is held"] = c.box.Run(asAlice("sbatch", "--parsable", "--output=/dev/null", "--partition=target", "--hold", "--array=0-4", "/mnt/job")...)
			limitless := c.jobs["running"]
			c.box.Run("scontrol", "update", "JobId="+limitless, "TimeLimit=UNLIMITED")

			l, err := slurmcache.New(slurmcache.Key{Namespace: "ns", Name: "c"}, slurmcache.Config{Endpoint: "http://counted", Issuer: issuer(t, "slurm")}, slurmcache.Options{Transport: c.box.Transport})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { defer close(ended); l.Run(ctx) }()
			t.Cleanup(func() { cancel(); <-ended })
			l.LeavePartitions("target")
			want := map[string]need.Jobs{"target": {Running: 6, Suspended: 1, Pending: 4, Held: 7, Last: limitless}}
			apiserver.Eventually(t, func() error {
				if diff := cmp.Diff(need.Answer{Of: want}, l.LeavingJobs()); diff != "" {
					return fmt.Errorf("jobs (-want +got):\n%s", diff)
				}
				return nil
			})
			jobs := need.ParseSqueue(c.box.Run("squeue", "--all", "--array", "--noheader", "--partition=target", "--format="+need.SqueueFormat))
			if diff := cmp.Diff(want, need.Count(jobs, []string{"target"})); diff != "" {
				t.Errorf("by squeue (-want +got):\n%s", diff)
			}
			spare := need.ParseSqueue(c.box.Run("squeue", "--all", "--array", "--noheader", "--partition=spare", "--format="+need.SqueueFormat))
			if diff := cmp.Diff(map[string]need.Jobs{"spare": {Held: 1}}, need.Count(spare, []string{"spare"})); diff != "" {
				t.Errorf("by squeue, of a partition that a job may take as well (-want +got):\n%s", diff)
			}
		})
	}
}
