// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"maps"
	"slices"
	"strconv"
)

// KubeNode is a Kubernetes node as a place for workers.
type KubeNode struct {
	Name string
	// Hostname is the host name of a worker on it in scaling mode DaemonSet.
	Hostname string
	// Fit says how far it is one for workers.
	Fit Fit
}

// Fit says how far a Kubernetes node is one for the workers of a NodeSet. Each is more than the one before.
type Fit int8

const (
	// Unfit means: no worker may be there.
	Unfit Fit = iota
	// Stays means: a worker that is there stays, and no other comes, because of a taint with effect NoSchedule.
	Stays
	// Fits means: the template fits the node, but it is cordoned.
	Fits
	// Belongs means: one belongs there, but none can be started now: the node is not ready, or short of something.
	Belongs
	// Starts means: one belongs there and can be started.
	Starts
)

// daemons makes one worker on each Kubernetes node where one belongs, and retires those that are elsewhere, twice on one
// node, or have another host name than they should have.
func (in Input) daemons(staying []Pod, retired map[string]Cause, plan *Plan) {
	nodes := in.nodes()
	keeper := map[string]bool{}
	for _, p := range slices.Backward(staying) { // who would be missed most comes first
		n, ok := nodes[p.Node]
		switch {
		case retired[p.Name] != "":
		case !ok || n.Fit < Stays || keeper[p.Node]:
			retired[p.Name] = ScaleIn
		case p.Hostname != n.Hostname:
			retired[p.Name] = Replace
		}
		if retired[p.Name] == "" {
			keeper[p.Node] = true
		}
	}
	// Whatever is on a node keeps it until it is gone: its successor has the same name, here and in Slurm.
	occupied, names := map[string]bool{}, map[string]bool{}
	for _, p := range in.Pods {
		occupied[p.Node], names[p.Hostname] = true, true
	}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		if n := nodes[name]; n.Fit >= Starts && !occupied[name] && !names[n.Hostname] {
			plan.Create = append(plan.Create, Place{Node: name, Hostname: n.Hostname})
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

// waitsInVain says that a pod was bound to a Kubernetes node that is none for it any more, before it got there. Nothing
// has ever run in it.
func (in Input) waitsInVain(p Pod) bool {
	if p.Scheduled || p.Node == "" || p.Phase != "Pending" || p.Daemon != in.Daemon {
		return false
	}
	if in.Daemon {
		n, ok := in.nodes()[p.Node]
		return !ok || n.Fit < Stays
	}
	return in.Pins[p.Ordinal] != p.Node
}

// Pin says on which Kubernetes node each ordinal is to come back: where it runs now, or ran last according to before,
// as long as the template fits it, cordoned or not. Ordinals that are no longer wanted and have no pod are forgotten.
func Pin(before map[string]string, pods []Pod, replicas int, nodes []KubeNode) map[int]string {
	fits := map[string]bool{}
	for _, n := range nodes {
		fits[n.Name] = n.Fit >= Fits
	}
	pins := map[int]string{}
	for key, node := range before {
		if ordinal, err := strconv.Atoi(key); err == nil && ordinal < replicas && fits[node] {
			pins[ordinal] = node
		}
	}
	for _, p := range pods {
		if p.Scheduled && !p.Daemon && p.Ordinal >= 0 && fits[p.Node] {
			pins[p.Ordinal] = p.Node
		}
	}
	return pins
}

// Pinned is a set of pins in the form of status.ordinalToNode; nil when there are none.
func Pinned(pins map[int]string) map[string]string {
	if len(pins) == 0 {
		return nil
	}
	out := make(map[string]string, len(pins))
	for ordinal, node := range pins {
		out[strconv.Itoa(ordinal)] = node
	}
	return out
}
