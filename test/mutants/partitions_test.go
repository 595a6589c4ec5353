// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

// partitions are bugs of who lets partitions go.
func partitions() []mutation {
	return []mutation{
		{
			name:   "a partition that is to go takes new jobs",
			edits:  []edit{{"internal/slurm/conf/linger.go", `Option{"State", "DRAIN"}`, `Option{"State", "UP"}`}},
			suite:  "internal/slurm/conf",
			caught: "TestPartitionsLinger",
		},
		{
			name:   "a partition goes while a job needs it",
			edits:  []edit{{"internal/slurm/slurmcache/leaving.go", "refusal.Code != rest.CodePartitionInUse:", "refusal.Code == rest.CodePartitionInUse:\n\t\t\tfree = append(free, name)\n\t\tcase !refused:"}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestAPartitionIsFreeWhenItsLastJobHasEnded/26.05.5",
		},
		{
			name:   "the jobs that are read for a partition count for nothing",
			edits:  []edit{{"internal/slurm/slurmcache/jobsearch.go", "p.took(aboutJobs, getJob)", ""}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestJobsThatMayNeedAPartitionAreReadWithinTheShareOfJobs",
		},
		{
			name:   "the lists of partitions count for nothing",
			edits:  []edit{{"internal/slurm/slurmcache/jobsearch.go", "p.took(aboutDaemons, listPartitions)", ""}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestPartitionsAreAskedForWithinTheShareOfDaemons/24.11.5",
		},
		{
			name:   "a partition goes although a task of an array started while its jobs were looked for",
			edits:  []edit{{"internal/slurm/slurmcache/jobsearch.go", "\t\ts.listed = false\n", "\t\tbreak\n"}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestATaskThatStartsWhileJobsAreLookedForKeepsItsPartition",
		},
		{
			name:   "a partition stands in slurm.conf and in a file that it includes",
			edits:  []edit{{"internal/render/slurmctld/linger.go", " || included[name]", ""}},
			suite:  "internal/render/slurmctld",
			caught: "TestWhatMovesIntoAFileThatStaysIncludedIsNotGone",
		},
		{
			name:   "a partition that goes from an included file ends its jobs",
			edits:  []edit{{"internal/render/slurmctld/include.go", "if f.Name == name {", "if f.Name == name && p == nil {"}},
			suite:  "internal/render/slurmctld",
			caught: "TestWhatGoesFromAnIncludedFileStaysUntilNoJobNeedsIt",
		},
		{
			name:   "a file that is included from elsewhere is not told",
			edits:  []edit{{"internal/render/slurmctld/include.go", `case name == "":`, `case name == "" && large:`}},
			suite:  "internal/render/slurmctld",
			caught: "TestFilesThatAreIncludedAndNotKnownAreTold",
		},
		{
			name:   "slurm.conf has no room for what lingers beside what it includes",
			edits:  []edit{{"internal/render/slurmctld/include.go", "len(text) > maxInlinedBytes", "len(text) > 99*maxInlinedBytes"}},
			suite:  "internal/render/slurmctld",
			caught: "TestFilesThatAreIncludedAndNotKnownAreTold",
		},
		{
			name:   "the first value of a key counts that is included",
			edits:  []edit{{"internal/slurm/conf/inline.go", "d.entries[i] = e\n", ""}},
			suite:  "internal/slurm/conf",
			caught: "TestWhatIsIncludedIsReadInItsPlace/the_latest_value_of_a_key_counts",
		},
	}
}
