// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package passivecheck

import "slices"

// Need is something about the node that a decision cannot do without, and that is expensive to know.
type Need int

// What is needed.
const (
	// NeedNothing: the decision stands.
	NeedNothing Need = iota
	// NeedPlatform: which GPUs the node has.
	NeedPlatform
	// NeedNode: slurmctld's answer about the node.
	NeedNode
)

// Facts are what is known when a check is selected. nil is what has not been asked for yet.
type Facts struct {
	Context Context
	// Job is nil where the context has none.
	Job      *Job
	Platform *Platform
	Node     *Node
}

// Selection is whether a check runs.
type Selection struct {
	Run bool
	// Why it does not run, or what it waits for.
	Why string
	// Need is what to find out before Select is called again.
	Need Need
}

// Select reports whether a check runs, in the order of docs/contributors/predecessors/soperator-checks.md#checks-before-and-after-jobs. What
// is expensive to know is asked for last.
//
//	| case                                    | answer | why                                              |
//	|-----------------------------------------|--------|--------------------------------------------------|
//	| the context is not among contexts       | no     | it is for another caller                         |
//	| a CPU job, with skip_for_cpu_jobs       | no     | the job uses none of what is checked             |
//	| the platform is not among platforms     | no     | the node has none of what is checked             |
//	| a part of the GPUs, with its field      | no     | others may be using the rest                     |
//	| the node is not drained, node_states so | no     | the check brings nodes back                      |
//	| a job is needed and there is none       | -      | HealthCheckProgram has no job, and skips nothing |
func (c Check) Select(f Facts) Selection {
	if !c.runsIn(f.Context) {
		return Selection{Why: "it is for other contexts"}
	}
	if f.Job != nil && c.SkipForCPUJobs && len(f.Job.GPUs) == 0 {
		return Selection{Why: "the job has no GPUs"}
	}
	if !slices.Contains(c.Platforms, anyValue) {
		if f.Platform == nil {
			return Selection{Why: "the platform is not known", Need: NeedPlatform}
		}
		if !slices.ContainsFunc(f.Platform.Tags(), func(tag string) bool { return slices.Contains(c.Platforms, tag) }) {
			return Selection{Why: "it is for other platforms than " + f.Platform.Tag()}
		}
	}
	if f.Job != nil && c.SkipForPartialGPUJobs {
		if f.Platform == nil {
			return Selection{Why: "the number of GPUs is not known", Need: NeedPlatform}
		}
		if len(f.Job.GPUs) < len(f.Platform.Models) {
			return Selection{Why: "the job does not have all GPUs of the node"}
		}
	}
	if !slices.Contains(c.NodeStates, anyValue) {
		if f.Node == nil {
			return Selection{Why: "the state of the node is not known", Need: NeedNode}
		}
		if !f.Node.Drained() {
			return Selection{Why: "the node is not drained"}
		}
	}
	return Selection{Run: true}
}

func (c Check) runsIn(context Context) bool {
	return !slices.Contains(c.Contexts, noContext) && (slices.Contains(c.Contexts, anyValue) || slices.Contains(c.Contexts, string(context)))
}
