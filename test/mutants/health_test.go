// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

// healths returns bugs by which a broken worker stays in service, or a worker wrongly goes out of service or comes back. Soperator has
// had the first of each: docs/contributors/predecessors/soperator-health.md and soperator-checks.md#reactions there.
func healths() []mutation {
	const (
		maintenance, states, reactions = "internal/health/maintenance.go", "internal/controller/worker/workerplan/state_change.go", "internal/controller/nebius/activecheck/activecheckplan/reaction.go"
		rebooter, nodes                = "internal/controller/rebooter/rebooterplan/lists.go", "internal/controller/rebooter/rebooterplan/kubernetes.go"
		replacement, notReady          = "internal/health/replacement.go", "internal/health/not_ready.go"
	)
	return []mutation{
		{
			name:   "a Node is deleted while a job is suspended there",
			edits:  []edit{{"internal/health/replacement.go", "w.ends().And(w.Jobless) == node.Yes", "w.ends() == node.Yes"}},
			suite:  "internal/health",
			caught: "TestWhenTheNodeOfAMachineIsDeleted",
		},
		{
			name:   "a kubelet ends the jobs of a slurmd that hangs",
			edits:  []edit{{"internal/render/slurmd/slurmd.go", "c == nil || c.LivenessProbe == nil {\n\t\treturn\n\t}", "c == nil {\n\t\treturn\n\t}\n\tif c.LivenessProbe == nil {\n\t\tc.LivenessProbe = &corev1.Probe{}\n\t}"}},
			suite:  "internal/render/slurmd",
			caught: "TestNoKubeletEndsAContainerWithJobs",
		},
		{
			name:   "a pod that only has the labels of a worker has its machine rebooted",
			edits:  []edit{{"internal/controller/kubernetesnode/gather.go", "return workerpod.Owner(pod) != nil && r", "return r"}},
			suite:  "internal/controller/kubernetesnode",
			caught: "TestForWhichPodsAMachineMayBeRebootedAndReplaced",
		},
		{
			name:   "a machine is rebooted for a worker of a namespace that may not ask for it",
			edits:  []edit{{"internal/health/degraded.go", "!w.Foreign && w.State.Drain()", "w.State.Drain()"}},
			suite:  "internal/health",
			caught: "TestWhatIsWrittenAboutADegradedNode",
		},
		{
			name:   "a Node is deleted that has workers of namespaces alone that may not ask for it",
			edits:  []edit{{"internal/health/not_ready.go", "!n.asks()", "len(n.Workers) == 0"}},
			suite:  "internal/health",
			caught: "TestWhenANodeThatIsNotReadyIsDeleted",
		},
		{
			name:   "a machine is rebooted while a job is suspended there",
			edits:  []edit{{"internal/health/degraded.go", "w.State.Drained().And(w.Jobless) != node.Yes", "w.State.Drained() != node.Yes"}},
			suite:  "internal/health",
			caught: "TestWhatIsWrittenAboutADegradedNode",
		},
		{
			name:   "nobody asks for the jobs on a node that is to go",
			edits:  []edit{{"internal/controller/kubernetesnode/kubernetesnode.go", "r.wantJobs(node.Name, facts)", ""}},
			suite:  "test/integration/kubernetesnode",
			caught: "TestANodeStaysWhileAJobIsSuspendedThere",
		},
		{
			name: "of several conditions that announce maintenance the last one counts",
			edits: []edit{
				{maintenance, `case !c.announces(kind), condition.Status == corev1.ConditionFalse:`, "case !c.announces(kind):\n\t\tcase condition.Status == corev1.ConditionFalse:\n\t\t\tout = Maintenance{}"},
				{maintenance, `case out.Type == "", out.Type == NodeNotReady, kind != NodeNotReady && kind < out.Type:`, `default:`},
			},
			suite:  "internal/health",
			caught: "TestMaintenanceOfAKubernetesNode",
		},
		{
			name:   "nothing follows from the Slurm jobs of a check that end after the first",
			edits:  []edit{{"internal/controller/nebius/activecheck/activecheckplan/run.go", `if _, ended := r.Ended[id]; !ended {`, `if len(r.Ended) == 0 {`}},
			caught: "TestFaults/^failed_check$/none",
		},
		{
			name:   "what follows a failed check is read from successReactions",
			edits:  []edit{{reactions, `return spec.FailureReactions, "spec.failureReactions"`, `return spec.SuccessReactions, "spec.failureReactions"`}},
			suite:  "internal/controller/nebius/activecheck/activecheckplan",
			caught: "TestWhatFollowsAJobOfACheck",
		},
		{
			name:   "what follows a failed check is read from the deprecated reactions",
			edits:  []edit{{reactions, `case spec.FailureReactions != nil:`, `case spec.FailureReactions != nil && spec.Reactions == nil:`}},
			suite:  "internal/controller/nebius/activecheck/activecheckplan",
			caught: "TestWhatFollowsAJobOfACheck",
		},
		{
			name: "the rebooter uncordons what an administrator has cordoned",
			edits: []edit{
				{rebooter, `return s.Node.Marks.Cordoned || s.Node.Marks.Tainted },`, `return s.Node.Cordoned || s.Node.Tainted },`},
				{nodes, `if had.Cordoned && cordonedByUs(n) {`, `if n.Spec.Unschedulable {`},
			},
			suite:  "internal/controller/rebooter/rebooterplan",
			caught: "TestDecide",
		},
		{
			name:   "the rebooter uncordons what an administrator has cordoned again, while the mark of the rebooter was left",
			edits:  []edit{{nodes, `if had.Cordoned && cordonedByUs(n) {`, `if had.Cordoned {`}},
			suite:  "internal/controller/rebooter/rebooterplan",
			caught: "TestACordonThatSomebodyElseHasSetSinceStays",
		},
		{
			name:   "the Node of any machine is deleted for which maintenance is announced",
			edits:  []edit{{replacement, `return !n.Maintained.is(corev1.ConditionTrue) && !n.asks() },`, `return false },`}},
			suite:  "internal/health",
			caught: "TestWhenTheNodeOfAMachineIsDeleted",
		},
		{
			name:   "the Node of a machine is deleted that is not ready",
			edits:  []edit{{notReady, `!n.NotReady.is(corev1.ConditionTrue) && !n.asks()`, `false`}},
			suite:  "internal/health",
			caught: "TestWhenANodeThatIsNotReadyIsDeleted",
		},
		{
			name:   "the Node of a machine is deleted while jobs run there",
			edits:  []edit{{replacement, `func (n *Node) free() bool {`, "func (n *Node) free() bool {\n\tif n.NotReadyTimeout > 0 {\n\t\treturn true\n\t}"}},
			caught: "TestFaults/^machine_lost$/none",
		},
		{
			name: "a drain ends with the first of its causes",
			edits: []edit{{
				states, "f.drainedForOther(node.Reason{Text: f.wantedDrain()})\n\t\t\t},\n\t\t\tThen: func(f *facts) StateChange { return StateChange{Drain: f.wantedDrain()} },",
				"f.drainedForOther(node.Reason{Text: f.wantedDrain()})\n\t\t\t},\n\t\t\tThen: rule.Is[*facts](StateChange{Undrain: true}),",
			}},
			suite:  "internal/controller/worker/workerplan",
			caught: "TestMaintenanceOfTheKubernetesNode",
		},
		{
			name: "a run is over although the end of its last Slurm job could not be noted",
			edits: []edit{{
				"internal/controller/nebius/activecheck/drive.go", "if err := r.note(ctx, check, run.Job, run.Record); err != nil {\n\t\treturn errors.Join(append(errs, err)...)",
				"if err := r.note(ctx, check, run.Job, run.Record); err != nil {\n\t\terrs = append(errs, err)",
			}},
			suite:  "internal/controller/nebius/activecheck",
			caught: "TestAJobIsNotOverBeforeItIsNotedHowItsSlurmJobsEnded",
		},
		{
			name:   "a failed check drains without asking the disruption budget",
			edits:  []edit{{"internal/controller/nebius/activecheck/budget.go", `if slices.Contains(may.Wait, n.Node) {`, `if slices.Contains(may.Wait, n.Node) && set.Name == "" {`}},
			caught: "TestFaults/storm_of_failed_checks/none",
		},
		{
			name:   "a full disk drains without asking the disruption budget",
			edits:  []edit{{"internal/health/podstorage/budget.go", `is.Waits = is.Full == node.Yes && !may[workerpod.SlurmNode(p)]`, `is.Waits = may[workerpod.SlurmNode(p)] && false`}},
			caught: "TestFaults/storm_of_full_disks/none",
		},
		{
			name:   "a new run of a check forgets what the last one has drained",
			edits:  []edit{{"internal/health/budget/budget.go", "\t\tset.letGo(by, nil)\n", ""}},
			suite:  "internal/health/budget",
			caught: "TestADrainCountsUntilSlurmShowsIt",
		},
	}
}
