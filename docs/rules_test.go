// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/powerstate"
	"github.com/coxswain-hpc/coxswain/internal/reboot"
	"github.com/coxswain-hpc/coxswain/internal/rule"
	"github.com/coxswain-hpc/coxswain/internal/worker"
)

// TestThePageOfRulesIsThatOfTheLists compares contributors/rules.md with the lists by which the operator decides.
func TestThePageOfRulesIsThatOfTheLists(t *testing.T) {
	var out strings.Builder
	for _, about := range []struct {
		title string
		lists []rule.Description
	}{
		{"Which workers there are to be (`internal/nodeset`)", nodeset.Rules()},
		{"One worker (`internal/worker`)", worker.Rules()},
		{"A Kubernetes node with workers (`internal/health`)", health.Rules()},
		{"A Kubernetes node that is drained and rebooted (`internal/reboot`)", reboot.Rules()},
		{"A worker that Slurm powers up and down on request (`internal/powerstate`)", powerstate.Rules()},
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
