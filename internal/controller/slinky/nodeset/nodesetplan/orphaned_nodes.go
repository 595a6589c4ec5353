// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan

import (
	"slices"

	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// OrphanedNode is Slurm's record of a node whose worker is gone.
type OrphanedNode struct {
	Name  string
	State node.State
	// Reason is why it is drained or down; Reserved reports whether a reservation other than ours holds it.
	Reason   node.Reason
	Reserved bool
	Comment  node.Comment
}

// Dead answers whether Slurm has given the node up: it is DOWN and does not respond.
func (o *OrphanedNode) Dead() node.Answer { return o.State.Down().And(o.State.NotResponding()) }

// Open answers whether Slurm may start jobs there: it is neither DOWN nor draining.
func (o *OrphanedNode) Open() node.Answer { return o.State.Down().Not().And(o.State.Drain().Not()) }

// inReservation reports whether a reservation of the node is active, in which Slurm deletes no node.
func (o *OrphanedNode) inReservation() bool {
	return o.State.Has(node.Reserved) || o.State.Has(node.Maintenance)
}

// Held reports whether somebody else holds the node: it is reserved, or somebody who is neither us nor Slurm has drained it or set it DOWN.
func (o *OrphanedNode) Held() bool {
	return o.Reserved || node.HeldBy(o.State, o.Reason) == node.SomebodyElse
}

// orphanFacts are an orphaned node and what Kubernetes has: whether there is, or will be, a pod of a name, the host names of all pods, and
// the Kubernetes nodes.
type orphanFacts struct {
	*OrphanedNode
	nodeSet, uid string
	pods         func(name string) bool
	hostnames    hostlist.Set
	nodes        map[string]KubeNode
	hostNetwork  bool
}

//nolint:gochecknoglobals // a constant list
var orphanDrains = rule.List[*orphanFacts, bool]{
	Question: "Is the Slurm node of a worker that is gone drained?",
	Rules: []rule.Rule[*orphanFacts, bool]{
		{
			Name: "it takes no jobs, or it is not known whether it does", Does: "no", Why: "no job is sent there",
			When: func(f *orphanFacts) bool { return f.Open() != node.Yes },
		},
		{
			Name: "it is not known to be a worker of this NodeSet", Does: "no", Why: "it is somebody else's",
			When: func(f *orphanFacts) bool { return f.Comment.NodeSetName != f.nodeSet || f.Comment.PodName == "" },
		},
		{
			Name: "its pod is there, or about to be made", Does: "no", Why: "it is not orphaned",
			When: func(f *orphanFacts) bool { return f.pods(f.Comment.PodName) },
		},
		{
			Name: "otherwise", Does: "yes", Why: "a job that is sent there hangs until SlurmdTimeout is over, as after a slurmctld that comes back with the state of another day",
			Then: rule.Is[*orphanFacts](true),
		},
	},
}

//nolint:gochecknoglobals // a constant list
var orphanDeletions = rule.List[*orphanFacts, bool]{
	Question: "Is the record of a worker that is gone deleted, where the spec asks for that?",
	Rules: []rule.Rule[*orphanFacts, bool]{
		{
			Name: "Slurm has not given it up, or that is not known", Does: "no", Why: "a slurmd may run there",
			When: func(f *orphanFacts) bool { return f.Dead() != node.Yes },
		},
		{
			Name: "it is in an active reservation", Does: "no, until that is over", Why: "Slurm refuses it until then, and all that are named with it",
			When: func(f *orphanFacts) bool { return f.inReservation() },
		},
		{
			Name: "it is not known to be a worker of this very NodeSet", Does: "no", Why: "it is somebody else's",
			When: func(f *orphanFacts) bool {
				return f.Comment.NodeSetName != f.nodeSet || f.Comment.NodeSetUID != f.uid || f.Comment.Node == ""
			},
		},
		{
			Name: "a pod has its name", Does: "no", Why: "the node is that of a worker",
			When: func(f *orphanFacts) bool { return f.hostnames.Contains(f.Name) },
		},
		{
			Name: "its Kubernetes node is there, and its worker would have the same name, or, with the network of the host, may have it", Does: "no",
			Why: "the next worker there uses the record again",
			When: func(f *orphanFacts) bool {
				kube, exists := f.nodes[f.Comment.Node]
				return exists && (f.hostNetwork || kube.Hostname == f.Name)
			},
		},
		{Name: "otherwise", Does: "yes", Why: "its Kubernetes node is gone, or has another host name by now", Then: rule.Is[*orphanFacts](true)},
	},
}

//nolint:gochecknoglobals // a constant list
var departedDeletions = rule.List[*orphanFacts, bool]{
	Question: "Is the record of a worker deleted when its NodeSet goes?",
	Rules: []rule.Rule[*orphanFacts, bool]{
		{
			Name: "it is not known to be a worker of this very NodeSet", Does: "no", Why: "it is somebody else's",
			When: func(f *orphanFacts) bool {
				return f.Comment.NodeSetName != f.nodeSet || f.Comment.NodeSetUID != f.uid || f.Comment.PodName == ""
			},
		},
		{
			Name: "its pod is there", Does: "no", Why: "whoever deleted the NodeSet wanted to keep it, or another NodeSet has it",
			When: func(f *orphanFacts) bool { return f.pods(f.Comment.PodName) },
		},
		{
			Name: "jobs are there, or may be", Does: "no", Why: "Slurm deletes no record of a busy node",
			When: func(f *orphanFacts) bool { return f.State.Busy() != node.No },
		},
		{
			Name: "it is in an active reservation, or somebody else has drained, set down or reserved it", Does: "no",
			Why:  "what they said about it would go with the record",
			When: func(f *orphanFacts) bool { return f.inReservation() || f.Held() },
		},
		{Name: "otherwise", Does: "yes, unless a job names it", Why: "nobody brings the worker back, and Slurm would show it as down for ever", Then: rule.Is[*orphanFacts](true)},
	},
}

// DepartedNodesToDelete returns the names of the records to delete when a NodeSet goes, unless a job names them. pods reports whether there
// is a pod of a name.
func DepartedNodesToDelete(records []OrphanedNode, nodeSet, uid string, pods func(name string) bool) []string {
	return chosen(&departedDeletions, records, orphanFacts{nodeSet: nodeSet, uid: uid, pods: pods})
}

// OrphanedNodesToDrain returns the names of nodes of a NodeSet to drain. pods reports whether there is, or will be, a pod of a name.
func OrphanedNodesToDrain(records []OrphanedNode, nodeSet string, pods func(name string) bool) []string {
	return chosen(&orphanDrains, records, orphanFacts{nodeSet: nodeSet, pods: pods})
}

// OrphanedNodesToDelete returns the names of the records of a NodeSet to delete.
func OrphanedNodesToDelete(records []OrphanedNode, nodeSet, uid string, in Input) []string {
	f := orphanFacts{nodeSet: nodeSet, uid: uid, hostnames: hostlist.SetOf(), nodes: in.nodes(), hostNetwork: in.HostNetwork}
	for _, p := range in.Pods {
		f.hostnames.Add(p.Hostname)
	}
	return chosen(&orphanDeletions, records, f)
}

// chosen returns the names of the nodes for which a list decides true.
func chosen(list *rule.List[*orphanFacts, bool], records []OrphanedNode, f orphanFacts) (names []string) {
	for i := range records {
		f.OrphanedNode = &records[i]
		if list.Decide(&f) {
			names = append(names, f.Name)
		}
	}
	slices.SortFunc(names, hostlist.Compare)
	return names
}
