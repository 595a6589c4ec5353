// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheckplan

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// What Soperator promises of the jobs of checks: docs/contributors/predecessors/soperator-checks.md#slurm-jobs-of-checks.
const (
	// hiddenPartition is where jobs of checks run, and backgroundPartition where those of a job array did.
	hiddenPartition     = "hidden"
	backgroundPartition = "background"
	jobDirectory        = "/opt/soperator-home/soperatorchecks"
	jobOutput           = "/opt/soperator-outputs/local/slurm_jobs/%N.%x.%j.out"
)

// Run is which Slurm jobs a run of a check has.
type Run struct {
	// Check is the name of the check and of its jobs.
	Check string
	// Given is the batch script, and what it asks for itself by its #SBATCH lines.
	Given rest.Submission
	// Marker is what the comment of the jobs begins with, by which they are found again.
	Marker string
	// Environment are variables of the jobs as NAME=value.
	Environment []string
	// Hidden is the partition of the jobs, and Background that of the jobs of array mode. An empty one leaves the choice to Given.
	Hidden, Background string
	// Reservation is the reservation to run one job in; empty for none.
	Reservation string
	// EachWorker has one job for each healthy worker. Array is the same field of the first generation.
	EachWorker, Array bool
	// Max is the most jobs that are submitted; 0 is any number.
	Max int
}

// Submissions returns the jobs of a run. The cases in order:
//
//	case               jobs
//	in a reservation   one, in partition hidden
//	each worker        one for each healthy node in partition hidden, for at most Max of them, chosen by chance
//	array              the same in partition background: the tasks of an array may meet on one node
//	otherwise          one, in partition hidden
//
// Name, directory and output, which has the errors as well, are the operator's, whatever the script sets, as on the command line of sbatch.
// A job that asks for GPUs goes to nodes that have some. The comment is that
// of the script after the marker: "skip_checks" there keeps passive checks from the job.
func Submissions(run Run, nodes []rest.Node, chance *rand.Rand) []rest.Submission {
	one := run.Given
	one.Name, one.Environment, one.Directory, one.Output = run.Check, run.Environment, jobDirectory, jobOutput
	one.Comment, one.Error = commentOf(run.Marker, "", run.Given.Comment), ""
	one.Partition = cmp.Or(run.Hidden, one.Partition)
	switch {
	case run.Reservation != "":
		one.Reservation = run.Reservation
		return []rest.Submission{one}
	case !run.EachWorker && !run.Array:
		return []rest.Submission{one}
	case !run.EachWorker:
		one.Partition = cmp.Or(run.Background, one.Partition)
	}
	var out []rest.Submission
	for _, name := range chosen(nodes, needsGPUs(run.Given), run.Max, chance) {
		job := one
		job.Nodes, job.Comment = []string{name}, commentOf(run.Marker, name, run.Given.Comment)
		out = append(out, job)
	}
	return out
}

// needsGPUs reports whether a job asks for GPUs.
func needsGPUs(job rest.Submission) bool {
	return job.GPUsPerNode != "" || slices.ContainsFunc(job.Gres, rest.IsGPU)
}

// hasGPUs reports whether a node has GPUs.
func hasGPUs(n rest.Node) bool {
	return slices.ContainsFunc(strings.Split(n.Gres, ","), rest.IsGPU)
}

// chosen returns the names of healthy nodes, if gpus is true of those with GPUs, at most limit of them if it is not 0, in order.
func chosen(nodes []rest.Node, gpus bool, limit int, chance *rand.Rand) []string {
	var names []string
	for i := range nodes {
		if healthy(node.Parse(nodes[i].State)) && (!gpus || hasGPUs(nodes[i])) {
			names = append(names, nodes[i].Name)
		}
	}
	slices.Sort(names)
	if limit > 0 && len(names) > limit {
		chance.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		names = names[:limit]
		slices.Sort(names)
	}
	return names
}

// healthy reports whether a job that must have the node would start there once others have ended. Where Slurm does not report that, it is
// not.
func healthy(state node.State) bool {
	if !state.Based() || state.Base() == node.Down || state.Base() == node.Error || state.Base() == node.Future {
		return false
	}
	return !slices.ContainsFunc([]node.Word{
		node.Drain, node.Fail, node.Reserved, node.Maintenance, node.InvalidReg, node.NotResponding, node.PoweredDown, node.PowerDown,
		node.PoweringDown, node.PowerDrain, node.PowerDownASAP, node.PowerDownForce, node.RebootRequested, node.RebootIssued, node.Blocked,
	}, state.Has)
}
