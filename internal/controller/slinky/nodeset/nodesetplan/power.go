// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan

import (
	"slices"

	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// PowerSaving is what a NodeSet needs to know whose workers Slurm powers up and down. Slurm's record of a node shows whether its worker
// runs; see decision 023.
type PowerSaving struct {
	// Initial is how many workers run before Slurm knows them. At least one does.
	Initial int
	// Before is the number of workers that was wanted before.
	Before int
	// Asked reports whether Nodes has what Slurm reports now.
	Asked bool
	// Makes reports whether Slurm makes records of nodes that never ran.
	Makes bool
	// Nodes are the Slurm nodes of the workers by ordinal, without those that Slurm does not have.
	Nodes map[int]PowerNode
	// Names are the names of the Slurm nodes by ordinal, also of those that Slurm does not have.
	Names map[int]string
}

// PowerNode is Slurm's record of the node of a worker that it powers up and down.
type PowerNode struct {
	// Name is its name in Slurm.
	Name   string
	State  node.State
	Reason node.Reason
	// Reserved reports whether a reservation other than ours holds it.
	Reserved bool
	// Foreign reports whether somebody else has written its comment, and Described whether it has one. Registered answers whether the record
	// was made from what the next worker registers with.
	Foreign, Described bool
	Registered         node.Answer
}

// Off reports whether Slurm has powered the node down, or does so now, and has not asked for it again.
func (n PowerNode) Off() bool {
	return (n.State.Has(node.PoweredDown) || n.State.Has(node.PoweringDown)) && !n.State.Has(node.PoweringUp)
}

// Late reports whether Slurm has given the node up because it did not come within ResumeTimeout.
func (n PowerNode) Late() bool {
	return n.Off() && n.State.Down() == node.Yes && n.Reason.ResumeTimeout()
}

// powerFacts are an ordinal of a NodeSet, whether it has a pod, and its Slurm node if Slurm has one.
type powerFacts struct {
	*PowerSaving
	ordinal int
	pod     bool
	node    PowerNode
	known   bool
	// sample is a node that shows what the nodes are like that Slurm does not have; empty when there is none, or Slurm makes no records.
	sample string
	// last reports whether others are to be made, and no other record of the present spec would stay if this one were made anew now.
	last bool
}

// powerFate is what becomes of the worker of an ordinal.
type powerFate int8

const (
	// Nothing: there is none, and none is made.
	_ powerFate = iota
	// powerWanted: it is to be there.
	powerWanted
	// powerOff: Slurm has powered it down.
	powerOff
)

//nolint:gochecknoglobals // a constant list
var powerFates = rule.List[*powerFacts, powerFate]{
	Question: "Is there a worker of an ordinal, where Slurm powers workers up and down?",
	Rules: []rule.Rule[*powerFacts, powerFate]{
		{
			Name: "Slurm does not answer, and the worker is there", Does: "yes", Why: "workers stay as they are while it is not known what Slurm wants",
			When: func(f *powerFacts) bool { return !f.Asked && f.pod }, Then: rule.Is[*powerFacts](powerWanted),
		},
		{
			Name: "Slurm does not answer", Does: "no", Why: "none is made while it is not known what Slurm wants",
			When: func(f *powerFacts) bool { return !f.Asked },
		},
		{
			Name: "Slurm does not have the node, and the worker is there", Does: "yes", Why: "it is about to register, or another rule finds out what became of its record",
			When: func(f *powerFacts) bool { return !f.known && f.pod }, Then: rule.Is[*powerFacts](powerWanted),
		},
		{
			Name: "Slurm does not have the node, and knows of no other what it would be, and the ordinal is one of those that run at first", Does: "yes", Why: "Slurm knows a node once it has registered",
			When: func(f *powerFacts) bool { return !f.known && f.sample == "" && f.ordinal < f.first() }, Then: rule.Is[*powerFacts](powerWanted),
		},
		{
			Name: "Slurm does not have the node", Does: "no", Why: "it cannot ask for it either",
			When: func(f *powerFacts) bool { return !f.known },
		},
		{
			Name: "Slurm has powered the node down, or does so, and its jobs have not ended", Does: "as it is", Why: "a job may be there",
			When: func(f *powerFacts) bool { return f.pod && f.node.Off() && f.node.State.Busy() != node.No }, Then: rule.Is[*powerFacts](powerWanted),
		},
		{
			Name: "Slurm has powered the node down, or does so", Does: "no: its pod is deleted without a drain", Why: "a drain would keep Slurm from asking for it again",
			When: func(f *powerFacts) bool { return f.node.Off() }, Then: rule.Is[*powerFacts](powerOff),
		},
		{Name: "otherwise", Does: "yes", Why: "it is in service, or Slurm waits for it", Then: rule.Is[*powerFacts](powerWanted)},
	},
}

// powered decides which workers there are, where Slurm powers them up and down. Replicas is the upper limit: a worker beyond it is retired
// like any other, unless Slurm has powered it down.
func (in *Input) powered(staying []*workerpod.Pod, retired map[string]workerpod.Cause, plan *Plan) {
	pods := in.ordinalsWithPods()
	plan.Desired = 0
	sample := in.PowerSaving.sample(in.Replicas)
	for ordinal := range in.Replicas {
		fate := in.powerOf(ordinal, pods[ordinal], sample)
		if fate == powerWanted && !pods[ordinal] {
			plan.Create = append(plan.Create, workerpod.Place{Ordinal: ordinal, Node: in.Pins[ordinal]})
		}
		if fate == powerWanted {
			plan.Desired++
		}
	}
	if !in.PowerSaving.Asked {
		plan.Desired = in.PowerSaving.Before
	}
	for _, p := range staying {
		switch {
		case in.powerOf(p.Ordinal, true, sample) == powerOff:
			plan.PowerDown = append(plan.PowerDown, p.Name)
		case p.Ordinal >= in.Replicas && retired[p.Name] == "":
			retired[p.Name] = workerpod.ScaleIn
		}
	}
	slices.Sort(plan.PowerDown)
}

// ordinalsWithPods returns the ordinals that have pods, including those that are being deleted.
func (in *Input) ordinalsWithPods() map[int]bool {
	pods := map[int]bool{}
	for i := range in.Pods {
		pods[in.Pods[i].Ordinal] = true
	}
	return pods
}

func (in *Input) powerOf(ordinal int, pod bool, sample string) powerFate {
	return powerFates.Decide(in.PowerSaving.facts(ordinal, pod, sample))
}

func (p *PowerSaving) facts(ordinal int, pod bool, sample string) *powerFacts {
	f := &powerFacts{PowerSaving: p, ordinal: ordinal, pod: pod, sample: sample}
	f.node, f.known = p.Nodes[ordinal]
	return f
}

//nolint:gochecknoglobals // a constant list
var powerResumes = rule.List[*powerFacts, bool]{
	Question: "Is a node that Slurm has powered down let back into service, so that Slurm can ask for it again?",
	Rules: []rule.Rule[*powerFacts, bool]{
		{
			Name: "it is not powered down, or its pod is there", Does: "no", Why: "its worker sees to its state",
			When: func(f *powerFacts) bool { return f.pod || !f.node.State.Has(node.PoweredDown) || !f.node.Off() },
		},
		{
			Name: "it is neither DOWN nor drained, or that is not known", Does: "no", Why: "Slurm can ask for it",
			When: func(f *powerFacts) bool { return f.node.State.Down().Or(f.node.State.Drain()) != node.Yes },
		},
		{
			Name: "it did not come within ResumeTimeout, and nobody else has set it DOWN or drained it", Does: "RESUME", Why: "Slurm asks for no node that is DOWN",
			When: func(f *powerFacts) bool {
				return f.node.Late() && node.HeldBy(f.node.State, f.node.Reason) != node.SomebodyElse
			}, Then: rule.Is[*powerFacts](true),
		},
		{
			Name: "we had drained it or set it DOWN", Does: "RESUME", Why: "it was for a worker that is gone",
			When: func(f *powerFacts) bool { return node.HeldBy(f.node.State, f.node.Reason) == node.Operator }, Then: rule.Is[*powerFacts](true),
		},
		{Name: "otherwise", Does: "no", Why: "somebody else has a say in it"},
	},
}

// NodesToResume returns the Slurm nodes to let back into service, so that Slurm can power them up again. Workers beyond replicas would not
// be made.
func NodesToResume(in Input) (names []string) {
	if in.PowerSaving == nil || !in.PowerSaving.Asked {
		return nil
	}
	pods := in.ordinalsWithPods()
	for ordinal := range in.Replicas {
		if f := in.PowerSaving.facts(ordinal, pods[ordinal], ""); f.known && powerResumes.Decide(f) {
			names = append(names, f.node.Name)
		}
	}
	return names
}
