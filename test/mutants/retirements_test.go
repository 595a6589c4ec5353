// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

// retirements returns bugs by which a worker is deleted that still has, or may have, a job.
func retirements() []mutation {
	const gather, end, stateChange = "internal/controller/worker/gather.go", "internal/controller/worker/workerplan/end.go", "internal/controller/worker/workerplan/state_change.go"
	return []mutation{
		{
			name: "a retired worker goes when Slurm lacks it, although Slurm may have lost its state",
			edits: []edit{
				{gather, `case workerpod.Lost(s.set), w.Pod.Was && snapshot.Forgotten(s.node):`, `case workerpod.Lost(s.set):`},
				{gather, `return workerpod.StateKept(all, snapshot).Not()`, `return workerpod.StateKept(all, snapshot).Or(node.Yes).Not()`},
			},
			caught: "TestALossOfStateCountsBeforeItIsNoted",
		},
		{
			name:   "a loss of state is not noted while the NodeSet is being deleted",
			edits:  []edit{{"internal/controller/slinky/nodeset/departure.go", `again, err = r.rememberLeaving(ctx, n)`, `again, err = time.Time{}, nil`}},
			caught: "TestALossOfStateIsNotedInEveryStateOfTheNodeSet/being_deleted",
		},
		{
			name:   "a loss of state is not noted while the NodeSet has a mistake",
			edits:  []edit{{"internal/controller/slinky/nodeset/nodeset.go", `p.workers = nodesetplan.Make(f.workers)`, `p.workers = nodesetplan.Plan{}`}},
			caught: "TestALossOfStateIsNotedInEveryStateOfTheNodeSet/with_a_mistake",
		},
		{
			name: "the time of drainTimeout counts from an earlier retirement",
			edits: []edit{
				{end, `workerpod.Later(f.Reason.At, f.Pod.RetiredAt).Add(f.DrainTimeout)`, `f.Reason.At.Add(f.DrainTimeout)`},
				{stateChange, `w.drainedToGo() && !strings.Contains`, `w.drainedToGo() && wanted.Text == "" && !strings.Contains`},
			},
			caught: "TestFaults/retired_again/none",
		},
		{
			name: "a retired worker that is DOWN goes without a drain",
			edits: []edit{
				{stateChange, `return f.State.Drain() == node.No },
			Then: func(f *facts) StateChange { return StateChange{Drain: f.retiring()} },`, `return f.State.Drain() == node.No && f.State.Down() != node.Yes },
			Then: func(f *facts) StateChange { return StateChange{Drain: f.retiring()} },`},
				{end, `return f.State.Drain() == node.No },`, `return f.State.Drain() == node.No && f.State.Down() != node.Yes },`},
			},
			caught: "TestFaults/scale_down_of_a_dead_worker/the_dead_come_back",
		},
		{
			name: "maintenance stops slurmctld while workers have jobs",
			edits: []edit{{
				"internal/compose/maintenance.go", `parts.Controller.Spec.Suspend = workers == "" || was != nil && was.Spec.Suspend`,
				`parts.Controller.Spec.Suspend = true`,
			}},
			caught: "TestFaults/maintenance/none",
		},
		{
			name:   "a dead node in an active reservation keeps the records of others from being deleted",
			edits:  []edit{{"internal/slurm/slurmcache/write.go", `case c.delete && (s.State(name).Has(node.Reserved) || s.State(name).Has(node.Maintenance)):`, `case false:`}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestAReservedNodeKeepsNoOtherFromBeingDeleted",
		},
		{
			name: "one caller's time-out fails everybody's Confirm",
			edits: []edit{{
				"internal/slurm/slurmcache/nodepoller.go",
				`return ctx.Err() // The caller`,
				`return func() error { p.mu.Lock(); defer p.mu.Unlock(); p.finished, p.failed = number, ctx.Err(); return p.failed }() // The caller`,
			}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestACallerWhoGivesUpLeavesTheAnswerToTheOthers",
		},
		{
			name:   "the record of a NodeSet that goes is deleted while a job names its node",
			edits:  []edit{{"internal/slurm/need/named.go", "named.Add(name)", "_ = name"}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestANodeThatAJobNamesIsNotUnnamed",
		},
		{
			name:   "what an administrator said of a node goes with its NodeSet",
			edits:  []edit{{"internal/controller/slinky/nodeset/nodesetplan/orphaned_nodes.go", "f.inReservation() || f.Held()", "f.inReservation()"}},
			suite:  "internal/controller/slinky/nodeset/nodesetplan",
			caught: "TestWhichNodesOfANodeSetThatGoesAreDeleted",
		},
		{
			name:   "records of a NodeSet that is gone stay in Slurm for ever",
			edits:  []edit{{"internal/controller/slinky/nodeset/departure.go", "if err != nil || len(unnamed) == 0 {", "if err != nil || len(unnamed) > 0 {"}},
			suite:  "test/integration/nodeset",
			caught: "TestTheWorkersOfANodeSetThatIsBeingDeletedAreDrained",
		},
	}
}
