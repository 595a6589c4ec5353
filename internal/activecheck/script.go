// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheck

import (
	"strings"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// scripted is the script of a check, and what it asks for by its #SBATCH lines. A line that cannot be carried over is a mistake.
func scripted(in Input) (rest.Submission, problem.List) {
	path := ScriptPath
	if slurmSpec(in.Check).SbatchScriptRefName != "" {
		path = ScriptRefPath
	}
	for line := range strings.Lines(script(in)) {
		if strings.HasPrefix(line, "#SBATCH") {
			return rest.Submission{}, problem.List{problem.Errorf(path, nebiusv1alpha1.ReasonInvalidSpec, "%q is not carried over", strings.TrimSpace(line))}
		}
	}
	return rest.Submission{Script: script(in)}, nil
}
