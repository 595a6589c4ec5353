// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

// configurations returns those about slurm.conf.
func configurations() []mutation {
	return []mutation{
		{
			name:   "a key that Slurm no longer has is thought to be known",
			edits:  []edit{{"internal/slurm/conf/release.go", "CompareReleases(release, NewestRelease) >= 0", "CompareReleases(release, NewestRelease) > 0"}},
			suite:  "internal/slurm/conf",
			caught: "TestUnknownKnowsWhatAReleaseHas",
		},
		{
			name:   "a word that only a newer Slurm knows is refused",
			edits:  []edit{{"internal/slurm/conf/words.go", `release != "" && CompareReleases(release, NewestRelease) <= 0`, `release != ""`}},
			suite:  "internal/slurm/conf",
			caught: "TestWordsOfANewerReleasePass",
		},
		{
			name:   "a time that slurmctld keeps in 32 bits is taken for longer than it is",
			edits:  []edit{{"internal/slurm/conf/typed.go", "ok && total < -1", "ok && total < 0"}},
			suite:  "internal/slurm/conf",
			caught: "TestCheckAgreesWithSlurmctld",
		},
		{
			name:   "usage that is never forgotten ends slurmctld",
			edits:  []edit{{"internal/slurm/conf/check.go", "ok && total == 0 &&", "ok && total < 0 &&"}},
			suite:  "internal/slurm/conf",
			caught: "TestCheckNamesTheLine",
		},
		{
			name:   "a key of a newer Slurm is refused while its image may be on the way",
			edits:  []edit{{"internal/render/slurmctld/preflight.go", `unknown.Newer && p.in.Release == ""`, `unknown.Newer && p.in.Release != ""`}},
			suite:  "internal/render/slurmctld",
			caught: "TestUnknownKeys",
		},
		{
			name:   "a file that an included file includes is not looked at",
			edits:  []edit{{"internal/render/slurmctld/preflight.go", "if f.Name == name {", "if false {"}},
			suite:  "internal/render/slurmctld",
			caught: "TestMistakes",
		},
		{
			name:   "line 134 comes before line 5",
			edits:  []edit{{"internal/problem/problem.go", "cmp.Compare(len(one), len(other)), ", ""}},
			suite:  "internal/problem",
			caught: "TestListIsInTheOrderOfNumbers",
		},
		{
			name:   "a job whose epilog hangs is COMPLETING for ever",
			edits:  []edit{{"internal/render/slurmctld/slurmconf.go", `d.Add("PrologEpilogTimeout", strconv.Itoa(scriptSeconds))`, "_ = scriptSeconds"}},
			suite:  "internal/render/slurmctld",
			caught: "TestNoJobCompletesForEver",
		},
		{
			name:   "processes are given up sooner than slurmctld takes the time for messages",
			edits:  []edit{{"internal/render/slurmctld/slurmconf.go", "5*message <= unkillableSeconds", "message <= unkillableSeconds"}},
			suite:  "internal/render/slurmctld",
			caught: "TestNoJobCompletesForEver",
		},
		{
			name:   "jobs may lock as little memory as a login session",
			edits:  []edit{{"internal/render/slurmctld/confine.go", `d.Add("PropagateResourceLimitsExcept", "MEMLOCK")`, ""}},
			suite:  "internal/render/slurmctld",
			caught: "TestJobsDoNotInheritHowMuchMemoryASessionMayLock",
		},
		{
			name:   "jobs are thought to be confined where no plugin puts them into control groups",
			edits:  []edit{{"internal/render/slurmctld/confine.go", "if !hasTaskCgroup(slurm) {", "if false {"}},
			suite:  "internal/render/slurmctld",
			caught: "TestWhatDoesNotKeepJobsToWhatTheyWereGiven",
		},
		{
			name:   "each worker makes host keys of its own",
			edits:  []edit{{"internal/render/slurmd/pod.go", "	addHostKeys(n, &out.Spec)\n", ""}},
			suite:  "internal/render/slurmd",
			caught: "TestWhatAUserMountsTakesThePlaceOfWhatWorkersHave",
		},
		{
			name:   "jobs have no more shared memory than a container runtime gives",
			edits:  []edit{{"internal/render/slurmd/pod.go", "	addSharedMemory(&out.Spec)\n", ""}},
			suite:  "internal/render/slurmd",
			caught: "TestWhatAUserMountsTakesThePlaceOfWhatWorkersHave",
		},
	}
}
