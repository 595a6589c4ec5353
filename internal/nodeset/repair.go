// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"slices"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// unregisteredFor is how long a ready worker may be unknown to Slurm before it is made anew. slurmd registers within a
// second; a slurmctld that restarts takes up to a minute to know all nodes again.
const unregisteredFor = 2 * time.Minute

// repair retires workers that run and that Slurm does not have, because somebody deleted the node's record: slurmd does
// not register again by itself. No more go at once than may be unavailable. When Slurm has fewer nodes than are missing,
// it has lost its state, and jobs may still run under slurmd that it knows nothing of; then nothing is done, and Lost says
// how many there are.
func (in Input) repair(candidates []Pod, retired map[string]Cause, plan *Plan) {
	var missing []Pod
	present := 0
	for _, p := range candidates {
		switch {
		case p.Registered == node.Unknown && p.Retired == Unregistered:
			retired[p.Name] = Unregistered
			continue
		case p.Ready && p.Registered == node.No && p.Phase == "Running":
			since := p.ReadySince.Add(unregisteredFor)
			if in.Now.Before(since) {
				plan.wake(since)
			} else if !in.Asked.Before(since) {
				missing = append(missing, p)
				continue
			}
		}
		if p.Ready && p.Retired == "" {
			present++
		}
	}
	if in.Listed < len(missing) {
		plan.Lost = len(missing)
		return
	}
	slices.SortStableFunc(missing, func(a, b Pod) int { return -boolean(a.Retired == Unregistered, b.Retired == Unregistered) })
	budget := in.MaxUnavailable - max(0, plan.Desired-present-len(missing))
	for _, p := range missing[:max(0, min(budget, len(missing)))] {
		retired[p.Name] = Unregistered
	}
}

// Remnant is what Slurm has on a node.
type Remnant struct {
	Name string
	// Dead says that it is DOWN and does not respond.
	Dead    node.Answer
	Comment node.Comment
}

// Defunct are the names of the records to delete: those of nodes that are dead, were workers of the NodeSet by this name and
// UID, have no pod, and whose Kubernetes node is gone or has another host name by now.
func Defunct(records []Remnant, nodeSet, uid string, in Input) []string {
	nodes := in.nodes()
	names := hostlist.SetOf()
	for _, p := range in.Pods {
		names.Add(p.Hostname)
	}
	var out []string
	for _, r := range records {
		kube, exists := nodes[r.Comment.Node]
		if r.Dead == node.Yes && r.Comment.NodeSetName == nodeSet && r.Comment.NodeSetUID == uid && r.Comment.Node != "" &&
			!names.Contains(r.Name) && (!exists || kube.Hostname != r.Name) {
			out = append(out, r.Name)
		}
	}
	slices.SortFunc(out, hostlist.Compare)
	return out
}
