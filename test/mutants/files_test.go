// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

// files are bugs of who writes files into a jail.
func files() []mutation {
	const group = "internal/controller/nebius/jailedconfig/group.go"
	return []mutation{
		{
			name:   "Slurm is not told of files, because an older status says that nothing is owed",
			edits:  []edit{{group, "err != nil || behind {", "err != nil {"}},
			caught: "TestFaults/files/stale_watches",
		},
		{
			name:   "Slurm is not told of files that were written before a crash",
			edits:  []edit{{group, "r.report(ctx, members, p, outcome{writing: true})", "error(nil)"}},
			caught: "TestFaults/files/none",
		},
		{
			name:   "a JailedConfig ends jobs that name a worker which is being replaced",
			edits:  []edit{{"internal/controller/nebius/jailedconfig/reconfigure.go", "if len(named) > 0 {", "if len(named) < 0 {"}},
			suite:  "test/integration/jailedconfig",
			caught: "TestNoReconfigureEndsAJobThatNamesANodeWithoutARecord",
		},
		{
			name:   "100,000 states of jobs are asked for before a JailedConfig has slurmctld reread",
			edits:  []edit{{"internal/controller/nebius/jailedconfig/endangered.go", "diag.JobsRunning+diag.JobsPending > maxJobsListed", "diag.JobsRunning < 0"}},
			suite:  "internal/controller/nebius/jailedconfig",
			caught: "TestWithManyJobsNobodyIsAskedWhomTheyName",
		},
	}
}
