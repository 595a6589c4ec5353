// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

// words returns bugs about how far Slurm's answers are trusted.
func words() []mutation {
	return []mutation{
		{
			name:   "a NodeSet of which no worker ever registered cannot be deleted",
			edits:  []edit{{"internal/controller/slinky/nodeset/nodesetplan/repair.go", "case !gone && in.neverHad(p):", "case !gone && in.neverHad(p) && p.Was:"}},
			suite:  "internal/controller/slinky/nodeset/nodesetplan",
			caught: "TestWorkersThatSlurmHasNeverHadAreNotLost",
		},
		{
			name:   "nobody looks since when slurmctld has run",
			edits:  []edit{{"internal/controller/slinky/nodeset/gather.go", "if f.workers.Unregistered() {", "if f.workers.Unregistered() && f.set == nil {"}},
			caught: "TestANodeSetOfWhichNoWorkerEverRegisteredGoes/the_NodeSet_goes_when_slurmctld_has_run_since_before_it_was_made",
		},
		{
			name:   "an operator that was away takes workers for such that never registered",
			edits:  []edit{{"internal/controller/slinky/nodeset/nodesetplan/repair.go", "return !p.Was && !in.SlurmctldSince.IsZero() && p.Created", "return !p.Was && p.Created"}},
			suite:  "internal/controller/slinky/nodeset/nodesetplan",
			caught: "TestWorkersThatSlurmHasNeverHadAreNotLost",
		},
		{
			name:   "a flag of a newer Slurm counts for no job",
			edits:  []edit{{"internal/slurm/node/question.go", "if busy == No && !s.Certain() {", "if busy == No && !s.Based() {"}},
			suite:  "internal/slurm/node",
			caught: "TestQuestions/a_flag_from_the_future_may_mean_jobs",
		},
		{
			name:   "a flag of a newer Slurm makes its node uncertain for ever",
			edits:  []edit{{"internal/slurm/slurmcache/snapshot.go", "if jobs, known := s.Jobs(name); known == node.Yes && len(jobs) == 0 {", "if jobs, known := s.Jobs(name); known == node.Yes && jobs == nil && s.Trust != Fresh {"}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestANodeWithAFlagThatIsNotKnownIsFreeWhenTheListOfJobsSaysSo/without_jobs",
		},
		{
			name:   "a node with a flag of a newer Slurm is free although the list of jobs has one",
			edits:  []edit{{"internal/slurm/slurmcache/snapshot.go", "known == node.Yes && len(jobs) == 0 {", "known == node.Yes && len(jobs) >= 0 {"}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestANodeWithAFlagThatIsNotKnownIsFreeWhenTheListOfJobsSaysSo/with_a_suspended_job",
		},
		{
			name:   "the jobs of a node with a flag of a newer Slurm are not asked for",
			edits:  []edit{{"internal/controller/worker/workerplan/protection.go", "quiet := w.State.Busy() == node.No || w.State.Doubtful()", "quiet := w.State.Busy() == node.No"}},
			suite:  "internal/controller/worker/workerplan",
			caught: "TestTheJobsOfANodeWithAFlagThatIsNotKnownAreAskedFor",
		},
		{
			name:   "Confirm believes a slurmctld whose clock was set back that nothing changed",
			edits:  []edit{{"internal/slurm/slurmcache/deletion_budget.go", "return p.poll(ctx, true)", "return p.poll(ctx, false)"}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestAClockThatWasSetBackHidesNothing",
		},
		{
			name:   "a slurmctld whose clock was set back hides what happens at rest",
			edits:  []edit{{"internal/slurm/slurmcache/nodepoller.go", "certain = certain || asked.Sub(p.clockSeen) >= clockInterval", "certain = certain || p.clockSeen.After(asked)"}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestAClockThatWasSetBackHidesNothing",
		},
		{
			name:   "a slurmctld whose clock was set back hides jobs",
			edits:  []edit{{"internal/slurm/slurmcache/jobs.go", "list.Unchanged && !since.holds(ctx, client, f.view.clock) {", "list.Unchanged && since.updated.IsZero() {"}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestJobsAreListedWhenTheClockWasSetBack",
		},
		{
			name:   "the slurmctld that took over is asked what changed since the list of the one before",
			edits:  []edit{{"internal/slurm/slurmcache/ctldpoller.go", "active != p.active {", `active != p.active && p.active == "" {`}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestFailoverIsSeenAndAllIsListedAgain",
		},
		{
			name:   "a reason is of a time that is to come, by the clock of a slurmctld that is gone",
			edits:  []edit{{"internal/slurm/slurmcache/snapshot.go", "known && t.After(seen.Add(maxClockDifference))", "known && t.Before(seen.Add(-maxClockDifference)) && seen.IsZero()"}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestATimeOfANodeIsNoLaterThanTheNodeWasSeenToHaveIt",
		},
	}
}
