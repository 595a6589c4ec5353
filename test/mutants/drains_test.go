// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

// drains returns bugs about drains that are not ended although they should, or are ended although they hold.
func drains() []mutation {
	const notes, end = "internal/controller/worker/workerplan/noted_drain.go", "internal/controller/worker/workerplan/end.go"
	return []mutation{
		{
			name:   "a drain is shown in one write and the end of the protection in another",
			edits:  []edit{{"internal/controller/worker/workerplan/shown.go", `f.situation == staying && f.Pod.Protected`, `f.situation == staying && f.Pod.Protected && f.DrainTimeout < 0`}},
			suite:  "internal/controller/worker/workerplan",
			caught: "TestADrainIsShownTogetherWithTheEndOfTheProtection",
		},
		{
			name:   "a drain for a registration that no longer holds stays for ever",
			edits:  []edit{{"internal/controller/worker/workerplan/state_change.go", `endedDrains.Decide(f) != "" },`, `endedDrains.Decide(f) == "never" },`}},
			suite:  "internal/controller/worker/workerplan",
			caught: "TestWhichDrainsOfOthersEnd",
		},
		{
			name:   "a drain for a registration ends although no other slurmd has started",
			edits:  []edit{{notes, `f.drainedForRegistration() && f.Record.StartedSince`, `f.drainedForRegistration()`}},
			suite:  "internal/controller/worker/workerplan",
			caught: "TestWhichDrainsOfOthersEnd",
		},
		{
			name:   "the drain of a person ends because slurmctld has written its reason over theirs",
			edits:  []edit{{notes, `r.Record.Drained.OfRegistration() && r.Held == node.No`, `r.Record.Drained.OfRegistration()`}},
			suite:  "internal/controller/worker/workerplan",
			caught: "TestWhichDrainsOfOthersAreNoted",
		},
		{
			name:   "the drain of a person ends because nobody remembers who held the node",
			edits:  []edit{{"internal/controller/worker/memory.go", `p.held = w.HeldSince(p.held)`, `p.held = node.No`}},
			suite:  "internal/controller/worker",
			caught: "TestWhoHeldANodeBeforeSlurmctldIsRemembered",
		},
		{
			name:   "the drain of a check ends on the machine that it is about",
			edits:  []edit{{notes, `Differs(f.Host.Machine) == node.Yes`, `Differs(f.Host.Machine) != node.Unknown`}},
			suite:  "internal/controller/worker/workerplan",
			caught: "TestWhichDrainsOfOthersEnd",
		},
		{
			name:   "the drain of a check outlives the machine that it is about",
			edits:  []edit{{notes, `r.drainedByCheck() && !r.Reason.Silent()`, `r.drainedByCheck() && r.Reason.Silent()`}},
			suite:  "internal/controller/worker/workerplan",
			caught: "TestWhichDrainsOfOthersAreNoted",
		},
		{
			name:   "a machine whose Node was made anew is taken for another one",
			edits:  []edit{{"internal/workerpod/machine.go", `!known || m.System != other.System`, `true`}},
			suite:  "internal/controller/worker/workerplan",
			caught: "TestMachinesDiffer",
		},
		{
			name:   "the note of a drain is taken for one of a newer drain",
			edits:  []edit{{"internal/slurm/node/comment.go", ` && c.DrainedAt == drain.At.UTC().Format(time.RFC3339) ||`, ` ||`}},
			suite:  "internal/slurm/node",
			caught: "TestTheNoteOfADrain",
		},
		{
			name:   "the link leaves a drain that the comment notes",
			edits:  []edit{{"internal/slurm/slurmcache/write.go", `ok && c.noted && comment.Notes(ReasonOf(n))`, `ok && c.delete && comment.Notes(ReasonOf(n))`}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestADrainThatTheCommentNotesIsEnded",
		},
		{
			name:   "the link ends any drain that the comment notes",
			edits:  []edit{{"internal/slurm/slurmcache/write.go", `ok && c.noted && comment.Notes(ReasonOf(n))`, `ok && comment.Notes(ReasonOf(n))`}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestADrainThatTheCommentNotesIsEnded",
		},
		{
			name:   "the words of slurmctld in the reason of a person are taken for slurmctld's",
			edits:  []edit{{"internal/slurm/node/registration.go", `if r.SetBy != slurmUser {`, `if r.SetBy == "" {`}},
			suite:  "internal/slurm/node",
			caught: "TestReasonsOfARegistration",
		},
		{
			name:   "a worker waits for a job that is COMPLETING and does not say so",
			edits:  []edit{{end, "if since, ok := w.completing(); ok {", "if since, ok := w.completing(); !ok && since != \"\" {"}},
			suite:  "internal/controller/worker/workerplan",
			caught: "TestAWorkerSaysThatItWaitsForAJobThatIsCompleting",
		},
		{
			name:   "nobody notices that a job became COMPLETING",
			edits:  []edit{{"internal/slurm/slurmcache/jobs.go", `j.Completing = j.Completing || rest.Completing(state)`, `_ = rest.Completing(state)`}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestItIsKnownWhichJobsAreCompleting",
		},
	}
}
