// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

// naming returns bugs by which a job ends because slurmctld reads its configuration without a node that the job names.
func naming() []mutation {
	const reading, named = "internal/slurm/slurmcache/reading.go", "TestARecordThatAJobNamesStaysWhileAConfigurationIsOnItsWay"
	return []mutation{
		{
			name:   "an edit ends a job that names a worker which is being replaced",
			edits:  []edit{{"internal/controller/slinky/controller/plan.go", `p.Fail("", f.absences.wait(c, out.ConfigDigest))`, `p.announced = out.ConfigDigest`}},
			caught: "TestNoEditEndsAJobThatNamesAWorkerThatIsReplaced",
		},
		{
			name:   "the engine deletes a record without a word to who writes the configuration",
			edits:  []edit{{"internal/controller/slinky/nodeset/records.go", `return maintained, l.Renew(ctx, names)`, `return maintained, l.Forget(ctx, names)`}},
			caught: "TestNoEditEndsAJobThatNamesAWorkerThatIsReplaced",
		},
		{
			name:   "the record of a node that a job names is deleted while a configuration is on its way",
			edits:  []edit{{reading, `if !r.read() {`, `if false {`}},
			suite:  "internal/slurm/slurmcache",
			caught: named,
		},
		{
			name:   "a configuration that another one has overtaken is not on its way any more",
			edits:  []edit{{reading, `r.overtaken = now`, `r.overtaken = time.Time{}`}},
			suite:  "internal/slurm/slurmcache",
			caught: named,
		},
		{
			name:   "an edit waits for ever where nobody knows which nodes jobs name",
			edits:  []edit{{reading, `now.Sub(at) > maxAbsence`, `now.Sub(at) < 0`}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestHowLongANodeOfWhichNobodyKnowsWhetherJobsNameItIsWaitedFor",
		},
		{
			name:   "the record of a machine that is gone is deleted while a job names its node",
			edits:  []edit{{"internal/controller/slinky/nodeset/orphaned_nodes.go", `l.ForgetUnnamed(ctx, defunct)`, `l.Forget(ctx, defunct)`}},
			suite:  "test/integration/nodeset",
			caught: "TestRecordsOfNodesAreDeletedWithTheirKubernetesNodes",
		},
		{
			name:   "a node whose line is to go takes new jobs",
			edits:  []edit{{"internal/slurm/conf/lingernodes.go", `Option{"State", "DRAIN"}`, `Option{"State", "IDLE"}`}},
			suite:  "internal/slurm/conf",
			caught: "TestNodesLinger",
		},
		{
			name:   "the line of a node goes while a job names it",
			edits:  []edit{{"internal/slurm/slurmcache/jobsearch.go", `[]string{job.Nodes, job.Required}`, `[]string{job.Nodes}`}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestANodeIsFreeWhenNoJobRunsThereOrNamesIt",
		},
		{
			name:   "the line of a node goes before the node is drained",
			edits:  []edit{{"internal/slurm/slurmcache/jobsearch.go", `snapshot.State(name).Drain() != node.Yes`, `snapshot.State(name).Drain() == node.Unknown`}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestANodeIsFreeWhenNoJobRunsThereOrNamesIt",
		},
		{
			name:   "nobody finds out whether a node may go",
			edits:  []edit{{"internal/controller/slinky/controller/slurm.go", `l.LeaveNodes(p.waits.Nodes...)`, `l.LeaveNodes()`}},
			caught: "TestTheLineOfANodeStaysUntilNoJobNeedsIt",
		},
		{
			name:   "a node stands in slurm.conf and in a file that it includes",
			edits:  []edit{{"internal/render/slurmctld/linger.go", " || nodes[name]", " && nodes != nil"}},
			suite:  "internal/render/slurmctld",
			caught: "TestWhatMovesIntoAFileThatStaysIncludedIsNotGone",
		},
		{
			name:   "a line of backslashes ends whoever reads it",
			edits:  []edit{{"internal/slurm/conf/parse.go", `if len(pairs) == 0 { // nothing`, `if len(pairs) < 0 { // nothing`}},
			suite:  "internal/slurm/conf",
			caught: "TestParse",
		},
		{
			name:   "who deletes the ConfigMap ends the jobs of what lingers",
			edits:  []edit{{"internal/controller/slinky/controller/live.go", `in.Live = slurmctld.ReadLive(r.remember(c, config.Data))`, `in.Live = slurmctld.ReadLive(config.Data)`}, {"internal/controller/slinky/controller/live.go", "if in.Live == nil {", "if in.Live == nil && set == nil {"}},
			caught: "TestWhatLingersOutlivesTheConfigMap/the_operator_runs",
		},
		{
			name:   "an operator that starts does not know what lingered in a ConfigMap that is deleted",
			edits:  []edit{{"internal/controller/slinky/controller/live.go", "if in.Live == nil {", "if in.Live == nil && set == nil {"}},
			caught: "TestWhatLingersOutlivesTheConfigMap/the_operator_is_restarted_meanwhile$",
		},
		{
			name:   "what is noted of partitions that linger lacks their nodes",
			edits:  []edit{{"internal/render/slurmctld/linger.go", "func(string) bool { return true })", "nil)"}},
			suite:  "internal/render/slurmctld",
			caught: "TestWhatLingersIsNotedAtTheStatefulSet",
		},
	}
}
