// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

// Usage returns what is made of the answers of scontrol and squeue.
func Usage(nodesText, jobsText, mark string) ([]NodeUse, []PartitionUse) {
	nodes, jobs := parseNodes(nodesText), parseJobs(jobsText, mark)
	countJobs(nodes, jobs)
	return nodes, partitionsOf(nodes, jobs)
}

// RemoteArgv returns what a container runs for a command without a user.
func RemoteArgv(container string, command ...string) []string {
	return remote{command: command}.argv(container)
}
