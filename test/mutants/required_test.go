// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

// required are bugs about checks that have to pass before a worker takes jobs.
func required() []mutation {
	const engine, checks, rendered = "internal/controller/worker/workerplan", "internal/workerpod/checks.go", "internal/render/slurmd"
	return []mutation{
		{
			name:   "a worker takes jobs before its check has passed",
			edits:  []edit{{"internal/controller/worker/workerplan/state_change.go", `cmp.Or(w.Storage.DrainReason(), w.Checks.DrainReason())`, `w.Storage.DrainReason()`}},
			suite:  engine,
			caught: "TestAWorkerThatWaitsForChecks",
		},
		{
			name:   "a record that is DOWN is used the moment the slurmd of an unchecked machine registers",
			edits:  []edit{{"internal/controller/worker/workerplan/state_change.go", `len(f.Checks) > 0 && f.State.Drain() == node.No`, `len(f.Checks) > 0 && f.State.Drain() == node.No && f.State.Down() == node.No`}},
			suite:  engine,
			caught: "TestAWorkerThatWaitsForChecks",
		},
		{
			name:   "a check counts as passed while nothing is known of the machine",
			edits:  []edit{{checks, `Differs(machine) == node.No`, `Differs(machine) != node.Yes`}},
			suite:  engine,
			caught: "TestForWhichChecksAWorkerWaits",
		},
		{
			name:   "a worker waits for ever for a check that is required no more",
			edits:  []edit{{checks, `!slices.Contains(required, name)`, `slices.Contains(required, "")`}},
			suite:  engine,
			caught: "TestForWhichChecksAWorkerWaits",
		},
		{
			name:   "workers that run drain when a check becomes required",
			edits:  []edit{{checks, `range RequiredChecks(annotations)`, `range required`}},
			suite:  engine,
			caught: "TestForWhichChecksAWorkerWaits",
		},
		{
			name:   "a new machine registers undrained although checks are required",
			edits:  []edit{{"internal/render/slurmd/slurmd.go", `list += drainedUntilChecked`, `list += ""`}},
			suite:  rendered,
			caught: "TestWorkersThatNeedChecks",
		},
		{
			name:   "the drain until checks have passed makes the record of a node outdated",
			edits:  []edit{{"internal/render/slurmd/registration.go", `strings.Replace(said, drainedUntilChecked, "", 1)`, `strings.Replace(said, drainedUntilChecked, "", 0)`}},
			suite:  rendered,
			caught: "TestWorkersThatNeedChecks",
		},
		{
			name:   "a rolling update goes on while the new workers wait for their checks",
			edits:  []edit{{"internal/controller/slinky/nodeset/nodesetplan/update.go", `!p.Ready || slices.ContainsFunc`, `!p.Ready || false && slices.ContainsFunc`}},
			suite:  "internal/controller/slinky/nodeset/nodesetplan",
			caught: "TestRollingUpdate",
		},
		{
			name:   "a check that has passed on another machine counts for this one",
			edits:  []edit{{"internal/controller/nebius/activecheck/activecheckplan/machine.go", `j.Name == name && j.Annotations[slinkyv1beta1.AnnotationMachine] == w.Machine.String()`, `j.Name != ""`}},
			suite:  "internal/controller/nebius/activecheck/activecheckplan",
			caught: "TestWhatWorkersThatNeedACheckWaitFor",
		},
	}
}
