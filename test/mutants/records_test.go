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
		{
			name:   "a worker that has registered by another name is made anew",
			edits:  []edit{{"internal/nodeset/repair.go", `case p.Elsewhere != "": // it runs, under another name`, `case p.Elsewhere == "none":`}},
			suite:  "internal/nodeset",
			caught: "TestAMismatchOfNamesAloneTakesNoWorker",
		},
		{
			name:   "slurmd in the network of its Kubernetes node takes the host name of the machine",
			edits:  []edit{{"internal/render/worker/hostnetwork.go", `c.Args = append([]string{"-N", "$(" + kubeNodeVariable + ")"}, c.Args...)`, ``}},
			suite:  "internal/render/worker",
			caught: "TestPod",
		},
		{
			name:   "the table of nodes becomes smaller with the NodeSets",
			edits:  []edit{{"internal/render/controller/maxnodes.go", `most := max(leastNodes, in.MaxNodeCount)`, `most := leastNodes`}},
			suite:  "internal/render/controller",
			caught: "TestTheTableOfNodesFollowsTheNodeSets",
		},
		{
			name:   "the table of nodes does not follow the NodeSets",
			edits:  []edit{{"internal/render/controller/maxnodes.go", `for need := nodesToBe(in); 4*most < 5*need; {`, `for need := 0; 4*most < 5*need; {`}},
			suite:  "internal/render/controller",
			caught: "TestTheTableOfNodesFollowsTheNodeSets",
		},
	}
}
