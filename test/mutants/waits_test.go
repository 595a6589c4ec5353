// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

// waits returns bugs in the code that finds for which jobs an edit waits.
func waits() []mutation {
	return []mutation{
		{
			name:   "100,000 states of jobs are asked for to count those of a partition",
			edits:  []edit{{"internal/slurm/slurmcache/leaving.go", "jobs > maxJobsCounted", "jobs < 0"}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestMoreJobsThanAreCountedCostNothingElseThanTheirNumber/24.11.5",
		},
		{
			name:   "the jobs of a partition are not counted in a cluster with more than 500",
			edits:  []edit{{"internal/slurm/slurmcache/leaving.go", "maxJobsCounted = 3000", "maxJobsCounted = 500"}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestThousandsOfJobsAreCountedInTurns/26.05.5",
		},
		{
			name:   "all records are read at once to count the jobs of a partition",
			edits:  []edit{{"internal/slurm/slurmcache/jobrecords.go", "due[:min(len(due), limit.most)]", "due"}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestHowManyJobsAreReadForACount/26.05.5",
		},
		{
			name:   "jobs that have ended are read to count those of a partition",
			edits:  []edit{{"internal/slurm/slurmcache/leaving.go", "return !rest.Finished(s.State)", "return len(s.State) > 0"}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestJobsThatHaveEndedAreNotReadForACount/24.11.5",
		},
		{
			name:   "numbers of jobs are told as all of them while records are missing",
			edits:  []edit{{"internal/slurm/slurmcache/leaving.go", "AtLeast: known.Missing > 0", "AtLeast: false"}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestHowManyJobsAreReadForACount/24.11.5",
		},
		{
			name:   "a Controller is woken by each count of jobs",
			edits:  []edit{{"internal/slurm/slurmcache/leaving.go", "current && !reflect.DeepEqual(j.answer, answer)", "current && (true || reflect.DeepEqual(j.answer, answer))"}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestTheJobsThatNeedAPartitionAreCountedByKind/26.05.5",
		},
		{
			name:   "jobs are told as they were before Slurm went away",
			edits:  []edit{{"internal/slurm/slurmcache/leaving.go", "l.needs.view.snapshot().Trust != Fresh", "l.needs.answer.Of == nil && false"}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestTheJobsThatNeedAPartitionAreCountedByKind/24.11.5",
		},
		{
			name:   "jobs that are held count as pending",
			edits:  []edit{{"internal/slurm/need/need.go", `is("PENDING") && isHeld(job.Reason)`, `is("PENDING") && false && isHeld(job.Reason)`}},
			suite:  "internal/slurm/need",
			caught: "TestWhatIsSaidOfTheJobsOfAPartition",
		},
		{
			name:   "a job without a time limit ends first",
			edits:  []edit{{"internal/slurm/need/need.go", "(job.End.IsZero() || job.End.After(j.End))", "job.End.After(j.End)"}},
			suite:  "internal/slurm/need",
			caught: "TestWhatIsSaidOfTheJobsOfAPartition",
		},
		{
			name:   "each job that ends is an event of the edit",
			edits:  []edit{{"internal/controller/slinky/controller/conditions.go", "!p.waits.IsAbout(before.Message)", "before.Message != message"}},
			suite:  "internal/controller/slinky/controller",
			caught: "TestAnEditThatWaitsIsToldWithTheWayOut",
		},
		{
			name:   "a SlurmCluster keeps saying that an edit waits",
			edits:  []edit{{"internal/controller/nebius/slurmcluster/report.go", "s.report.Drop = append(s.report.Drop, slinkyv1beta1.ConditionEditWaits)", "_ = slinkyv1beta1.ConditionEditWaits"}},
			suite:  "internal/controller/nebius/slurmcluster",
			caught: "TestAnEditThatWaitsIsToldByTheCluster",
		},
		{
			name:   "diff shows a slurm.conf without the partitions that linger",
			edits:  []edit{{"internal/cli/preview/component.go", "in.Live = slurmctld.ReadLive(config.Data)", "_ = config.Data"}},
			suite:  "internal/cli",
			caught: "TestDiffShowsWhichJobsNeedAPartitionThatGoes",
		},
		{
			name:   "an edit that waits is found twice in a tree",
			edits:  []edit{{"internal/cli/finding.go", `kind == "SlurmCluster" && c.Type`, `kind == "" && c.Type`}},
			suite:  "internal/cli",
			caught: "TestAnEditThatWaitsIsFoundOnceInATree",
		},
		{
			name:   "who sets the annotation is not told which jobs it ends",
			edits:  []edit{{"internal/webhook/validator.go", "return jobs, nil", "return nil, nil"}},
			suite:  "internal/webhook",
			caught: "TestWhoTakesAPartitionAwayIsTold",
		},
		{
			name:   "who takes a partition away is told of those that linger already",
			edits:  []edit{{"internal/render/slurmctld/editwaits.go", "return slices.Contains(list, name)", "return slices.Contains(list, name) && false"}},
			suite:  "internal/webhook",
			caught: "TestWhoTakesAPartitionAwayIsTold",
		},
		{
			name:   "who deletes a NodeSet is not told of its jobs",
			edits:  []edit{{"internal/webhook/validator.go", "warnings, err := validation.DeletionWarnings(ctx, v.live, obj, propagation(ctx))", "warnings, err := validation.DeletionWarnings(ctx, v.live, nil, propagation(ctx))"}},
			suite:  "internal/webhook",
			caught: "TestWhoDeletesANodeSetIsToldOfItsJobs/a_NodeSet_with_workers_and_a_partition_tells_of_both",
		},
		{
			name:   "the partition of a NodeSet that is deleted is taken to stay",
			edits:  []edit{{"internal/webhook/validation/deletion.go", "gone.SetFinalizers(nil)", "_ = gone.GetFinalizers()"}, {"internal/webhook/validation/editwaits.go", "there := set.DeletionTimestamp == nil ||", "there := true ||"}},
			suite:  "internal/webhook",
			caught: "TestWhoDeletesANodeSetIsToldOfItsJobs/a_NodeSet_with_workers_and_a_partition_tells_of_both",
		},
		{
			name:   "workers of which nothing is known are told as idle",
			edits:  []edit{{"internal/webhook/validation/deletion.go", "unknown > 0", "unknown < 0"}},
			suite:  "internal/webhook",
			caught: "TestWhoDeletesANodeSetIsToldOfItsJobs/a_NodeSet_with_a_drain_time-out_says_that_jobs_end_by_it,_and_of_which_workers_nothing_is_known",
		},
		{
			name:   "who deletes a NodeSet whose Slurm nobody can ask is told that it is drained",
			edits:  []edit{{"internal/webhook/validation/deletion.go", "reachable.Reason == slinkyv1beta1.ReasonNoRestAPI", "reachable.Reason == string(d.how)"}},
			suite:  "internal/webhook",
			caught: "TestWhoDeletesANodeSetIsToldOfItsJobs/a_NodeSet_whose_Slurm_nobody_can_ask_says_that_its_jobs_end",
		},
	}
}
