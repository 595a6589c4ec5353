// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

// checks are bugs about ActiveChecks and jails of Soperator's charts.
func checks() []mutation {
	const plan, jail = "internal/controller/nebius/activecheck/activecheckplan", "internal/node/jail/view"
	return []mutation{
		{
			name:   "a check that had nothing to do holds up those that depend on it",
			edits:  []edit{{plan + "/gate.go", `&& IsSlurmJob(check); last`, `&& !IsSlurmJob(check); last`}},
			suite:  plan,
			caught: "TestACheckThatHadNothingToDo",
		},
		{
			name:   "a job that asks for GPUs is submitted where there are none",
			edits:  []edit{{plan + "/plan.go", `if needsGPUs(run.Given) && !in.GPUs`, `if false && !in.GPUs`}},
			suite:  plan,
			caught: "TestARunThatNeedsGPUs",
		},
		{
			name:   "a run is skipped while the workers with GPUs are still to come",
			edits:  []edit{{plan + "/plan.go", `needsGPUs(run.Given) && !in.GPUs && len`, `needsGPUs(run.Given) && len`}},
			suite:  plan,
			caught: "TestARunThatNeedsGPUs",
		},
		{
			name: "a run without a healthy worker counts as one that had nothing to check",
			edits: []edit{{plan + "/runstatus.go", `case len(r.IDs) == 0 && r.Skipped != "":`, `case len(r.IDs) == 0:`}, {plan + "/runstatus.go", `	case len(r.IDs) == 0:
		return nebiusv1alpha1.SlurmRunError
`, ``}},
			suite:  plan,
			caught: "TestHowARunWent",
		},
		{
			name:   "a job is submitted without a variable that a Secret is still to bring",
			edits:  []edit{{plan + "/environment.go", `} else if required {`, `} else if required && source.Kind == "" {`}},
			suite:  plan,
			caught: "TestWhatVariablesReferTo",
		},
		{
			name:   "the lines of a script win over the variables of sbatch",
			edits:  []edit{{"internal/slurm/batch/variable.go", `all[at].set(s, variables[name])`, `all[at].set(&rest.Submission{}, variables[name])`}},
			suite:  "internal/slurm/batch",
			caught: "TestVariablesWinOverTheLines",
		},
		{
			name:   "a pod that starts follows a link that a user of the jail has put in the place of root's keys",
			edits:  []edit{{jail + "/rootkey.go", `strict := root.WithoutLinks()`, `strict := root`}},
			suite:  jail,
			caught: "TestAKeyPairFollowsNoLinks",
		},
		{
			name:   "root's key is authorized once more after a start that was interrupted",
			edits:  []edit{{jail + "/rootkey.go", `case bytes.Contains(there, bytes.TrimSpace(public)):`, `case len(there) == 0 && len(public) == 0:`}},
			suite:  jail,
			caught: "TestAnInterruptedKeyPair",
		},
	}
}
