// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheckplan

import (
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/slurm/batch"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// scripted returns the script of a check, and what it asks for by its #SBATCH lines and by variables such as SBATCH_TIMELIMIT. What cannot
// be carried over is a mistake.
// Unless the script sets --requeue or --no-requeue, a job fails with its node: a job that waits for the node's return would hold up all
// later runs.
func scripted(in Input, variables map[string]string) (rest.Submission, problem.List) {
	out, err := batch.Parse(script(in), variables)
	if err != nil {
		path := ScriptPath
		if slurmSpec(in.Check).SbatchScriptRefName != "" {
			path = ScriptRefPath
		}
		return out, problem.List{problem.Errorf(path, nebiusv1alpha1.ReasonInvalidSpec, "%s", problem.OneLine(err.Error()))}
	}
	if out.Requeue == nil {
		out.Requeue = new(false)
	}
	return out, nil
}
