// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

// Usage is what is made of the answers of scontrol and squeue.
func Usage(nodesText, jobsText string) ([]NodeUse, []PartitionUse) {
	nodes, jobs := parseNodes(nodesText), parseJobs(jobsText)
	countJobs(nodes, jobs)
	return nodes, partitionsOf(nodes, jobs)
}
