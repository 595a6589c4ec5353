// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

// records are bugs about what Slurm has on a node, and what the node is called.
func records() []mutation {
	return []mutation{
		{
			name:   "a Kubernetes node that comes takes the host name of a worker that runs",
			edits:  []edit{{"internal/controller/slinky/nodeset/nodesetplan/hostname.go", `n.holder[running] = i`, `n.running[node.Name] = ""`}},
			suite:  "internal/controller/slinky/nodeset/nodesetplan",
			caught: "TestWhoeverRunsKeepsItsHostName",
		},
		{
			name:   "two NodeSets make workers of one name in the same instant",
			edits:  []edit{{"internal/controller/slinky/nodeset/names.go", `other.set != set && other.pod != pod {`, `other.set != set && other.pod == pod {`}},
			suite:  "internal/controller/slinky/nodeset",
			caught: "TestOfTwoNodeSetsThatMakeWorkersOfOneNameInTheSameInstantOneDoes",
		},
		{
			name:   "a name stays taken for a worker that was not made",
			edits:  []edit{{"internal/controller/slinky/nodeset/names.go", `case err == nil && nameInSlurm(live) == name.node:`, `case err == nil && nameInSlurm(live) == name.node || client.IgnoreNotFound(err) == nil:`}},
			suite:  "internal/controller/slinky/nodeset",
			caught: "TestANameIsFreeWhenTheOtherWorkerWasNotMade",
		},
		{
			name:   "a worker that nobody owns any more loses its Slurm node to a new one",
			edits:  []edit{{"internal/controller/slinky/nodeset/names.go", `(owner == nil || owner.UID != n.UID)`, `owner != nil && owner.UID != n.UID`}},
			suite:  "internal/controller/slinky/nodeset",
			caught: "TestANameIsTakenUntilTheWorkerIsGone",
		},
		{
			name:   "a worker that has registered by another name is made anew",
			edits:  []edit{{"internal/controller/slinky/nodeset/nodesetplan/repair.go", `When: func(f *repairFacts) bool { return f.RegisteredAs != "" },`, `When: func(f *repairFacts) bool { return f.RegisteredAs == "none" },`}},
			suite:  "internal/controller/slinky/nodeset/nodesetplan",
			caught: "TestAMismatchOfNamesAloneTakesNoWorker",
		},
		{
			name:   "a worker of the pod network that has registered by another name is made anew with its jobs",
			edits:  []edit{{"internal/workerpod/slurm.go", `if p.Status.PodIP == "" {`, `if p.Status.PodIP == "" || !p.Spec.HostNetwork {`}},
			suite:  "internal/workerpod",
			caught: "TestUnderWhichNameAWorkerHasRegistered",
		},
		{
			name:   "the machine of a worker that has registered by another name is rebooted under its jobs",
			edits:  []edit{{"internal/controller/kubernetesnode/gather.go", `workerpod.RegisteredAs(pod, snapshot) != "" {`, `workerpod.RegisteredAs(pod, snapshot) == "none" {`}},
			suite:  "internal/controller/kubernetesnode",
			caught: "TestAWorkerThatIsRegisteredUnderAnotherNameIsNotKnownToBeFree",
		},
		{
			name:   "slurmd in the network of its Kubernetes node takes the host name of the machine",
			edits:  []edit{{"internal/render/slurmd/registration.go", `c.Args = append([]string{"-N", "$(" + kubeNodeVariable + ")"}, c.Args...)`, ``}},
			suite:  "internal/render/slurmd",
			caught: "TestPod",
		},
		{
			name:   "the table of nodes becomes smaller with the NodeSets",
			edits:  []edit{{"internal/render/slurmctld/maxnodes.go", `size := max(minNodeCount, in.MaxNodeCount)`, `size := minNodeCount`}},
			suite:  "internal/render/slurmctld",
			caught: "TestTheTableOfNodesFollowsTheNodeSets",
		},
		{
			name:   "the table of nodes does not follow the NodeSets",
			edits:  []edit{{"internal/render/slurmctld/maxnodes.go", `for need := nodesToBe(in); 4*size < 5*need && size < mostNodeCount; {`, `for need := 0; 4*size < 5*need && size < mostNodeCount; {`}},
			suite:  "internal/render/slurmctld",
			caught: "TestTheTableOfNodesFollowsTheNodeSets",
		},
		{
			name:   "the record of a worker that registers with something else stays",
			edits:  []edit{{"internal/controller/slinky/nodeset/drive.go", "\t\tr.renewRecords,\n", ""}},
			suite:  "test/integration/worker",
			caught: "TestWhatAWorkerRegistersWithChanges",
		},
		{
			name:   "an operator that has just started makes workers before it has heard of their records",
			edits:  []edit{{"internal/controller/slinky/nodeset/records.go", `plan.Create = nil // the`, `// the`}},
			caught: "TestFaults/rolling_update_with_jobs/crash",
		},
		{
			name:   "what an administrator has just said about a node is overwritten",
			edits:  []edit{{"internal/slurm/slurmcache/write.go", "if said != nil && c.overrides(said) {", "if said != nil && c.overrides(said) && name == \"\" {"}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestWhatSomebodyElseHasJustSaidIsKept",
		},
		{
			name:   "what an administrator has just said about a node is overwritten when lists are long, because only those are asked for",
			edits:  []edit{{"internal/slurm/slurmcache/write.go", "const maxSingleQueries = 2", "const maxSingleQueries = 0"}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestAFewNodesAreAskedAboutWithoutAList",
		},
		{
			name:   "the record of a worker goes with an administrator's drain",
			edits:  []edit{{"internal/controller/slinky/nodeset/nodesetplan/outdated.go", `return f.Held() }`, `return false }`}},
			suite:  "internal/controller/slinky/nodeset/nodesetplan",
			caught: "TestWhichRecordsGoBeforeAWorkerIsMade",
		},
		{
			name:   "the record of a worker goes with a drain that has no reason but Slurm's own, which has given up the node",
			edits:  []edit{{"internal/slurm/node/holder.go", `case state.Drain() != No:`, `case state.Drain() != No && reason.Text == "":`}},
			suite:  "internal/controller/slinky/nodeset/nodesetplan",
			caught: "TestWhichRecordsGoBeforeAWorkerIsMade",
		},
		{
			name:   "a node that we had set down is used again below a cordon, with which its drain ends",
			edits:  []edit{{"internal/controller/worker/workerplan/state_change.go", `if f.State.Drain() != node.No && (f.wantedDrain() != "" || !f.hostKnownWell()) {`, `if f.State.Drain() == 7 {`}},
			suite:  "internal/controller/worker/workerplan",
			caught: "TestANodeThatWeSetDownIsUsedAgain",
		},
		{
			name:   "a record is said to be that of whoever runs now",
			edits:  []edit{{"internal/controller/worker/workerplan/record_update.go", `cmp.Or(r.comment.Registration, wanted.Registration)`, `cmp.Or(wanted.Registration, r.comment.Registration)`}},
			suite:  "internal/controller/worker/workerplan",
			caught: "TestAWorkerSaysThatItsRecordIsNotItsOwn",
		},
	}
}
