// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan

import (
	"maps"
	"slices"

	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// KubeNode is a Kubernetes node as a place for workers.
type KubeNode struct {
	Name string
	// Hostname is the host name of a worker on it in scaling mode DaemonSet.
	Hostname string
	// Fit is how well it fits workers.
	Fit Fit
}

// Fit is how well a Kubernetes node fits the workers of a NodeSet. Each value is more than the one before.
type Fit int8

const (
	// Unfit means: no worker may be there.
	Unfit Fit = iota
	// Stays means: a worker that is there stays, and no other comes, because of a taint with effect NoSchedule.
	Stays
	// Fits means: the template fits the node, but it is cordoned.
	Fits
	// Belongs means: a worker belongs there, but none can be started now: the node is not ready, or short of something.
	Belongs
	// Starts means: a worker belongs there and can be started.
	Starts
)

//nolint:gochecknoglobals // a constant list
var daemonCauses = rule.List[*podFacts, workerpod.Cause]{
	Question: "Is a worker retired because of its Kubernetes node, in scaling mode DaemonSet?",
	Rules: []rule.Rule[*podFacts, workerpod.Cause]{
		{
			Name: "it was made for the other scaling mode", Does: "replace", Why: "its name and host name are those of the other mode",
			When: func(f *podFacts) bool { return f.cause != "" }, Then: func(f *podFacts) workerpod.Cause { return f.cause },
		},
		{
			Name: "its Kubernetes node is gone, or is none for it", Does: "scale-in", Why: "no worker belongs there",
			When: func(f *podFacts) bool { return f.kubeNodes[f.Node].Fit < Stays }, Then: rule.Is[*podFacts](workerpod.ScaleIn),
		},
		{
			Name: "another worker is on its Kubernetes node", Does: "scale-in", Why: "there is one for each; the one that would be missed most stays",
			When: func(f *podFacts) bool { return f.taken[f.Node] }, Then: rule.Is[*podFacts](workerpod.ScaleIn),
		},
		{
			Name: "it has another host name than it should have", Does: "replace", Why: "the annotation of the Kubernetes node says another one by now",
			When: func(f *podFacts) bool { return f.Hostname != f.kubeNodes[f.Node].Hostname }, Then: rule.Is[*podFacts](workerpod.Replace),
		},
		{Name: "otherwise", Does: "no", Why: "it is where it belongs"},
	},
}

// placeFacts are a Kubernetes node, the nodes on which pods are, and the host names that pods have.
type placeFacts struct {
	KubeNode
	occupied, hostnames map[string]bool
}

//nolint:gochecknoglobals // a constant list
var daemonPlaces = rule.List[*placeFacts, bool]{
	Question: "Is a worker made on a Kubernetes node, in scaling mode DaemonSet?",
	Rules: []rule.Rule[*placeFacts, bool]{
		{
			Name: "none can be started there", Does: "no", Why: "none belongs there, or the node is cordoned, not ready, or short of something",
			When: func(f *placeFacts) bool { return f.Fit < Starts },
		},
		{
			Name: "a pod is there", Does: "no", Why: "whatever is on a node keeps it until it is gone: its successor has the same name, here and in Slurm",
			When: func(f *placeFacts) bool { return f.occupied[f.Name] },
		},
		{
			Name: "a pod has its host name", Does: "no", Why: "two slurmds of one name would be one Slurm node",
			When: func(f *placeFacts) bool { return f.hostnames[f.Hostname] },
		},
		{Name: "otherwise", Does: "yes", Why: "one belongs there", Then: rule.Is[*placeFacts](true)},
	},
}

// daemons makes one worker on each Kubernetes node where one belongs, and retires those that are elsewhere, are second on a node, or have
// another host name than they should have.
func (in *Input) daemons(f *podFacts, staying []*workerpod.Pod, retired map[string]workerpod.Cause, plan *Plan) {
	f.taken = map[string]bool{}
	for _, p := range slices.Backward(staying) { // those that would be missed most come first
		f.Pod, f.cause = p, retired[p.Name]
		if cause := daemonCauses.Decide(f); cause != "" {
			retired[p.Name] = cause
		} else {
			f.taken[p.Node] = true
		}
	}
	place := &placeFacts{occupied: map[string]bool{}, hostnames: map[string]bool{}}
	for i := range in.Pods {
		place.occupied[in.Pods[i].Node], place.hostnames[in.Pods[i].Hostname] = true, true
	}
	for _, name := range slices.Sorted(maps.Keys(f.kubeNodes)) {
		place.KubeNode = f.kubeNodes[name]
		if daemonPlaces.Decide(place) {
			plan.Create = append(plan.Create, workerpod.Place{Node: name, Hostname: place.Hostname})
		}
	}
}

func (in Input) nodes() map[string]KubeNode {
	nodes := make(map[string]KubeNode, len(in.Nodes))
	for _, n := range in.Nodes {
		nodes[n.Name] = n
	}
	return nodes
}

// waitsInVain reports whether a pod was bound to a Kubernetes node that does not fit it any more, before it got there. Nothing has ever run
// in it.
func (f *podFacts) waitsInVain() bool {
	if f.Pod.Scheduled || f.Node == "" || f.Phase != "Pending" || f.Pod.Daemon != f.Input.Daemon {
		return false
	}
	if f.Input.Daemon {
		return f.kubeNodes[f.Node].Fit < Stays
	}
	return f.Pins[f.Ordinal] != f.Node
}
