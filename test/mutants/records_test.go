// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

// records are bugs about what Slurm has on a node, and what the node is called.
func records() []mutation {
	return []mutation{
		{
			name:   "a Kubernetes node that comes takes the host name of a worker that runs",
			edits:  []edit{{"internal/nodeset/hostname.go", `n.holder[running] = i`, `n.running[node.Name] = ""`}},
			suite:  "internal/nodeset",
			caught: "TestWhoeverRunsKeepsItsHostName",
		},
	}
}
