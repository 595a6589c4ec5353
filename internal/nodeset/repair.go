// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"slices"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// registrationTimeout is how long a ready worker may be unknown to Slurm before it is made anew. slurmd registers within a
// second; a slurmctld that restarts takes up to a minute to know all nodes again.
const registrationTimeout = 2 * time.Minute

// repair retires workers that run and that Slurm does not have, because somebody deleted the node's record: slurmd does
// not register again by itself. No more go at once than may be unavailable. When Slurm has lost its state, jobs may still
// run under slurmd that it knows nothing of; then nothing is done, and Lost says how many there are. Nor is anything done that
// was not done before while the last list is older than what it is to tell.
func (in Input) repair(candidates []Pod, retired map[string]Cause, plan *Plan) {
	var missing []Pod
	present := 0
	plan.Relist = in.outdated()
	if plan.Relist {
		plan.wake(in.Now.Add(time.Second))
	}
	for _, p := range candidates {
		switch {
		case p.Elsewhere != "": // it runs, under another name
		case p.Registered == node.Unknown && p.Retired == Unregistered:
			retired[p.Name] = Unregistered
			continue
		case p.Registered == node.No:
			if in.overdue(p, in.Listed) {
				if !plan.Relist || p.Retired == Unregistered {
					missing = append(missing, p)
				}
				continue
			}
			if due := p.due(); p.Ready && in.Listed.Before(due) {
				if p.Retired == Unregistered { // nobody remembers since when it is absent
					retired[p.Name] = Unregistered
					continue
				}
				plan.wake(Later(due, in.Now.Add(time.Second))) // Slurm must have been asked since then
			}
		}
		if p.Ready && p.Retired == "" {
			present++
		}
	}
	if plan.Lost = in.lost(); plan.Lost > 0 {
		return
	}
	slices.SortStableFunc(missing, func(a, b Pod) int { return -boolean(a.Retired == Unregistered, b.Retired == Unregistered) })
	budget := in.MaxUnavailable - max(0, plan.Desired-present-len(missing))
	for _, p := range missing[:max(0, min(budget, len(missing)))] {
		retired[p.Name] = Unregistered
	}
}

// overdue says of a worker that it had been ready for so long when Slurm was asked that Slurm should have had it.
func (in Input) overdue(p Pod, asked time.Time) bool {
	due := p.due()
	return p.Ready && p.Phase == "Running" && !p.Terminating && !in.Now.Before(due) && !asked.Before(due)
}

// outdated says that a worker of the cluster is overdue by Slurm's word that nothing changed, and not by its last list. If the
// worker is missing there by mistake, Slurm would say so for ever.
func (in Input) outdated() bool {
	doubtful := func(p Pod) bool {
		return p.Registered == node.No && p.Elsewhere == "" && in.overdue(p, in.Asked) && !in.overdue(p, in.Listed)
	}
	return slices.ContainsFunc(in.Pods, doubtful) || slices.ContainsFunc(in.Others, doubtful)
}

// due is when Slurm should have a worker at the latest. Since when it is ready is told by another clock than ours.
func (p Pod) due() time.Time { return Later(p.ReadySince, p.Absent).Add(registrationTimeout) }

// lost is the number of workers that run and that Slurm does not have because it has lost its state: when that is so of most
// workers of the cluster, or when one has vanished with most of them. Single records are deleted by people, and with care; a
// state is lost as a whole. It counts as lost until no worker is missing, since those that are made anew register, and would soon
// outnumber those that still run what Slurm has forgotten.
func (in Input) lost() int {
	registered, missing, ours := 0, 0, 0
	lost := in.Lost
	for i, p := range slices.Concat(in.Pods, in.Others) {
		forgotten := p.forgotten()
		switch {
		case p.Registered == node.Yes, p.Elsewhere != "":
			registered++
		case p.Registered == node.No && (forgotten || in.overdue(p, in.Listed) || in.Lost && p.Phase == "Running" && !p.Terminating):
			missing++
			if i < len(in.Pods) {
				ours++
			}
		}
		lost = lost || forgotten
	}
	if lost || missing > registered {
		return ours
	}
	return 0
}

// forgotten says that Slurm has lost the node of a worker that runs, with most others.
func (p Pod) forgotten() bool {
	return p.Registered == node.No && p.Forgotten && p.Was && p.Phase == "Running" && !p.Terminating
}

// Kept answers whether Slurm still has its state, by all workers of a cluster: Yes, unless it lacks more of those that it has had
// than it has. It is never a No: workers may have been made anew since.
func Kept(all []Pod) node.Answer {
	registered, missing := 0, 0
	for _, p := range all {
		switch {
		case p.Registered == node.Yes, p.Elsewhere != "":
			registered++
		case p.Registered == node.No && p.Was && p.Phase == "Running" && !p.Terminating:
			missing++
		}
	}
	if missing > registered {
		return node.Unknown
	}
	return node.Yes
}

// OrphanedNode is what Slurm has on a node whose worker is gone.
type OrphanedNode struct {
	Name string
	// Dead says that it is DOWN and does not respond.
	Dead node.Answer
	// Open says that Slurm may start jobs there: it is neither DOWN nor draining.
	Open node.Answer
	// Drained says that it is drained or drains.
	Drained node.Answer
	// Busy says that jobs are there, Invalid that its last slurmd offered less than the record wants.
	Busy, Invalid node.Answer
	// Reason is why it is drained or down; Reserved says that a reservation other than ours holds it.
	Reason   node.Reason
	Reserved bool
	// Locked says that some reservation of it is active, so that Slurm does not delete it.
	Locked  bool
	Comment node.Comment
}

// OrphanedNodesToDrain are the records of nodes to drain: those that were workers of the NodeSet by this name, whose pods are neither
// there nor about to be made, and to which Slurm would give jobs all the same, such as a slurmctld that comes back with the
// state of another day. A job that is sent to such a node hangs until SlurmdTimeout is over.
func OrphanedNodesToDrain(records []OrphanedNode, nodeSet string, pods func(name string) bool) []string {
	var out []string
	for _, r := range records {
		if r.Open == node.Yes && r.Comment.NodeSetName == nodeSet && r.Comment.PodName != "" && !pods(r.Comment.PodName) {
			out = append(out, r.Name)
		}
	}
	slices.SortFunc(out, hostlist.Compare)
	return out
}

// OrphanedNodesToDelete are the names of the records to delete: those of nodes that are dead, were workers of the NodeSet by this name and
// UID, have no pod, and whose Kubernetes node is gone or has another host name by now. One that is in an active reservation has its
// turn when that is over: Slurm refuses it until then, and all that are named with it.
func OrphanedNodesToDelete(records []OrphanedNode, nodeSet, uid string, in Input) []string {
	nodes := in.nodes()
	names := hostlist.SetOf()
	for _, p := range in.Pods {
		names.Add(p.Hostname)
	}
	var out []string
	for _, r := range records {
		kube, exists := nodes[r.Comment.Node]
		if r.Dead == node.Yes && !r.Locked && r.Comment.NodeSetName == nodeSet && r.Comment.NodeSetUID == uid && r.Comment.Node != "" &&
			!names.Contains(r.Name) && (!exists || kube.Hostname != r.Name) {
			out = append(out, r.Name)
		}
	}
	slices.SortFunc(out, hostlist.Compare)
	return out
}
