// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/powerstate/powerstateplan"
	"github.com/coxswain-hpc/coxswain/internal/controller/rebooter/rebooterplan"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
)

// TestThePageOfRulesIsThatOfTheLists compares contributors/rules.md with the lists by which the operator decides.
func TestThePageOfRulesIsThatOfTheLists(t *testing.T) {
	var out strings.Builder
	for _, about := range []struct {
		title string
		lists []rule.Description
	}{
		{"Which workers there are to be (`internal/controller/slinky/nodeset/nodesetplan`)", nodesetplan.Rules()},
		{"One worker (`internal/controller/worker/workerplan`)", workerplan.Rules()},
		{"A Kubernetes node with workers (`internal/health`)", health.Rules()},
		{"A Kubernetes node that is drained and rebooted (`internal/controller/rebooter/rebooterplan`)", rebooterplan.Rules()},
		{"A worker that Slurm powers up and down on request (`internal/controller/nebius/powerstate/powerstateplan`)", powerstateplan.Rules()},
	} {
		fmt.Fprintf(&out, "\n## %s\n", about.title)
		for _, list := range about.lists {
			fmt.Fprintf(&out, "\n### %s\n\n| when | then | why |\n|---|---|---|\n", list.Question)
			for _, line := range list.Lines {
				fmt.Fprintf(&out, "| %s | %s | %s |\n", escaped(line.Name), escaped(line.Does), escaped(line.Why))
			}
		}
	}
	compare(t, "contributors/rules.md", out.String())
}
