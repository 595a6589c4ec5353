// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan

import (
	"maps"
	"slices"
	"strconv"

	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// pinFacts are an ordinal and the Kubernetes node on which its worker runs or ran last.
type pinFacts struct {
	fit Fit
	// here reports whether its worker is on the node, and unschedulable whether it waits for the node and Kubernetes has found no room there.
	here, unschedulable bool
	// held reports whether a worker of another ordinal is on the node, leaving whether one of those is being deleted, and promised whether
	// another ordinal is to come back there.
	held, leaving, promised bool
	// shared reports whether several workers may be on one node.
	shared bool
}

//nolint:gochecknoglobals // a constant list
var pinned = rule.List[*pinFacts, bool]{
	Question: "Is an ordinal bound to the Kubernetes node where it ran last, with pinToNode?",
	Rules: []rule.Rule[*pinFacts, bool]{
		{
			Name: "the node is gone, or the template does not fit it any more", Does: "no", Why: "the worker would wait for ever",
			When: func(f *pinFacts) bool { return f.fit < Fits },
		},
		{
			Name: "its worker is there", Does: "yes", Why: "where a worker runs is where it comes back",
			When: func(f *pinFacts) bool { return f.here }, Then: rule.Is[*pinFacts](true),
		},
		{
			Name: "a worker of another ordinal is there, and there may be one only", Does: "no",
			Why:  "that one comes back there as well, so one of both would wait for ever; the one without a worker goes to a free node",
			When: func(f *pinFacts) bool { return !f.shared && f.held },
		},
		{
			Name: "a lower ordinal without a worker is to come back there, and there may be one only", Does: "no", Why: "only one of them can",
			When: func(f *pinFacts) bool { return !f.shared && f.promised },
		},
		{
			Name: "a worker of another ordinal is there, and Kubernetes finds no room for both", Does: "no",
			Why:  "the other one comes back there as well. A node that is cordoned or not ready, and one on which a worker is just ending, may have room later",
			When: func(f *pinFacts) bool { return f.unschedulable && f.held && !f.leaving && f.fit == Starts },
		},
		{Name: "otherwise", Does: "yes", Why: "what the worker has left there is there, also while the node is cordoned", Then: rule.Is[*pinFacts](true)},
	},
}

// Pin returns on which Kubernetes node each ordinal is to come back: where it runs now, or ran last according to before. Ordinals that are
// no longer wanted and have no pod are forgotten. shared reports whether several workers may be on one node.
func Pin(before map[string]string, pods []workerpod.Pod, replicas int, nodes []KubeNode, shared bool) map[int]string {
	fits := map[string]Fit{}
	for _, n := range nodes {
		fits[n.Name] = n.Fit
	}
	last, there, waiting := map[int]string{}, map[string][]*workerpod.Pod{}, map[int]*workerpod.Pod{}
	for key, node := range before {
		if ordinal, err := strconv.Atoi(key); err == nil && ordinal < replicas {
			last[ordinal] = node
		}
	}
	for i := range pods {
		p := &pods[i]
		if !p.Scheduled {
			waiting[p.Ordinal] = p
			continue
		}
		there[p.Node] = append(there[p.Node], p)
		if !p.Daemon && p.Ordinal >= 0 && fits[p.Node] >= Fits {
			last[p.Ordinal] = p.Node
		}
	}
	pins, promised := map[int]string{}, map[string]bool{}
	for _, ordinal := range slices.Sorted(maps.Keys(last)) {
		node := last[ordinal]
		f := &pinFacts{fit: fits[node], promised: promised[node], shared: shared}
		for _, p := range there[node] {
			f.here, f.held, f.leaving = f.here || p.Ordinal == ordinal, f.held || p.Ordinal != ordinal, f.leaving || p.Terminating
		}
		if p := waiting[ordinal]; p != nil {
			f.unschedulable = p.Unschedulable && p.Node == node
		}
		if pinned.Decide(f) {
			pins[ordinal] = node
			promised[node] = promised[node] || !f.here
		}
	}
	return pins
}

// Pinned returns pins in the form of status.ordinalToNode; nil when there are none.
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
