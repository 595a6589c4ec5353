// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

// pins returns bugs about the Kubernetes nodes to which workers come back.
func pins() []mutation {
	return []mutation{
		{
			name:   "a pinned worker waits for ever for the Kubernetes node of another one",
			edits:  []edit{{"internal/controller/slinky/nodeset/nodesetplan/pins.go", `return !f.shared && f.held }`, `return f.shared && f.held && f.here }`}},
			suite:  "test/integration/nodeset",
			caught: "TestAPinnedWorkerGoesElsewhereWhenAnotherOneHasItsNode",
		},
		{
			name:   "two workers that are away come back to one Kubernetes node",
			edits:  []edit{{"internal/controller/slinky/nodeset/nodesetplan/pins.go", `promised[node] = promised[node] || !f.here`, `promised[node] = f.here`}},
			suite:  "internal/controller/slinky/nodeset/nodesetplan",
			caught: "TestPin",
		},
		{
			name:   "pinned workers wait for ever for a Kubernetes node that has no room for both",
			edits:  []edit{{"internal/workerpod/facts.go", `c.Reason == corev1.PodReasonUnschedulable`, `c.Reason == ""`}},
			suite:  "test/integration/nodeset",
			caught: "TestWorkersThatShareAPinnedNodeDoSoWhileThereIsRoom",
		},
		{
			name:   "a pinned worker leaves a Kubernetes node on which another one is just ending",
			edits:  []edit{{"internal/controller/slinky/nodeset/nodesetplan/pins.go", `f.held && !f.leaving && f.fit == Starts`, `f.held && f.fit == Starts`}},
			suite:  "internal/controller/slinky/nodeset/nodesetplan",
			caught: "TestPinsToNodesThatWorkersShare",
		},
		{
			name:   "nobody learns for which Kubernetes node a pinned worker waits",
			edits:  []edit{{"internal/controller/slinky/nodeset/nodes.go", `case p.Node != "":`, `case p.Node == "none":`}},
			suite:  "internal/controller/slinky/nodeset",
			caught: "TestWhatWorkersWithPinsWaitFor",
		},
	}
}
