// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan

import (
	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// Slurm gives a job the addresses that its nodes have when it starts. For a node that powers up, it waits for the new address only if the
// record of the node was made with State=CLOUD (slurm.conf(5)), which a slurmd that registers cannot ask for. See decision 026.

// Clouds are what to do about the records of the nodes that Slurm powers up and down, by name.
type Clouds struct {
	// Delete are the records of workers that register with something else when they run next.
	Delete []string
	// Make are to be made with State=CLOUD.
	Make []Cloud
	// Describe are records that get a comment with their owner.
	Describe []string
}

// Cloud is a record that is made with State=CLOUD.
type Cloud struct {
	Name string
	// Like is the node whose hardware it gets; it may be the node itself.
	Like string
	// Anew reports whether a record exists, which is deleted before.
	Anew bool
}

// Empty reports whether there is nothing to do.
func (c Clouds) Empty() bool { return len(c.Delete)+len(c.Make)+len(c.Describe) == 0 }

// recordStep is what becomes of the record of a node that Slurm powers up and down.
type recordStep int8

const (
	// Nothing: it stays as it is, or there is none.
	_ recordStep = iota
	deleteRecord
	remakeRecord
	replaceRecord
	makeRecord
	describeRecord
)

//nolint:gochecknoglobals // a constant list
var recordSteps = rule.List[*powerFacts, recordStep]{
	Question: "What becomes of Slurm's record of a node that Slurm powers up and down?",
	Rules: []rule.Rule[*powerFacts, recordStep]{
		{
			Name: "its pod is there", Does: "nothing", Why: "its slurmd has the record",
			When: func(f *powerFacts) bool { return f.pod },
		},
		{
			Name: "there is none, and Slurm has no record of another worker with the same spec", Does: "nothing", Why: "nobody knows what machines the NodeSet gets",
			When: func(f *powerFacts) bool { return !f.known && f.sample == "" },
		},
		{
			Name: "there is none", Does: "make it with State=CLOUD, like that of another worker", Why: "Slurm can ask for what it has",
			When: func(f *powerFacts) bool { return !f.known }, Then: rule.Is[*powerFacts](makeRecord),
		},
		{
			Name: "Slurm has not powered the node down, or has asked for it again", Does: "nothing", Why: "Slurm waits for its worker, or the worker runs",
			When: func(f *powerFacts) bool { return !f.node.State.Has(node.PoweredDown) || !f.node.Off() },
		},
		{
			Name: "jobs are there, or may be", Does: "nothing", Why: "Slurm deletes no record of a busy node",
			When: func(f *powerFacts) bool { return f.node.State.Busy() != node.No },
		},
		{
			Name: "it is DOWN, drained or reserved, or that is not known, or somebody else has written its comment", Does: "nothing", Why: "what was said about the node would go with the record",
			When: func(f *powerFacts) bool {
				return f.node.State.Down().Or(f.node.State.Drain()) != node.No || f.node.Reserved || f.node.Foreign
			},
		},
		{
			Name: "it is that of another spec, and Slurm has one of the present spec", Does: "make it anew with State=CLOUD, like that one", Why: "a worker would run under a record of something else, and Slurm would give jobs what is not there",
			When: func(f *powerFacts) bool { return f.node.Registered == node.No && f.sample != "" }, Then: rule.Is[*powerFacts](replaceRecord),
		},
		{
			Name: "it is that of another spec, and its worker is one of those that run at first", Does: "delete it", Why: "the worker runs once more, and shows what machines the NodeSet gets now",
			When: func(f *powerFacts) bool { return f.node.Registered == node.No && f.ordinal < f.first() }, Then: rule.Is[*powerFacts](deleteRecord),
		},
		{
			Name: "it is that of another spec", Does: "nothing yet", Why: "nobody knows what machines the NodeSet gets now",
			When: func(f *powerFacts) bool { return f.node.Registered == node.No },
		},
		{
			Name: "it was not made with State=CLOUD, and no other record of the present spec stays while others are made", Does: "nothing yet",
			Why:  "should that fail, one has to be left that the others are made like",
			When: func(f *powerFacts) bool { return f.last && !f.node.State.Has(node.Cloud) },
		},
		{
			Name: "it was not made with State=CLOUD", Does: "make it anew with State=CLOUD", Why: "srun would look for the worker where it was before, in a job that wakes it",
			When: func(f *powerFacts) bool { return !f.node.State.Has(node.Cloud) }, Then: rule.Is[*powerFacts](remakeRecord),
		},
		{
			Name: "it does not say whose node it is", Does: "write that", Why: "the operator ended before it could",
			When: func(f *powerFacts) bool { return !f.node.Described }, Then: rule.Is[*powerFacts](describeRecord),
		},
		{Name: "otherwise", Does: "nothing", Why: "it is right"},
	},
}

// first returns how many workers run before Slurm knows them. At least one does, or nobody would know what their machines are.
func (p *PowerSaving) first() int { return max(1, p.Initial) }

// sample returns the first node whose record was made from what the next worker registers with; empty when there is none, or Slurm makes no
// records.
func (p *PowerSaving) sample(replicas int) string {
	for ordinal := range replicas {
		if n := p.Nodes[ordinal]; p.Makes && n.Registered == node.Yes {
			return n.Name
		}
	}
	return ""
}

// CloudRecords decides what to do about the records of the nodes that Slurm powers up and down.
func CloudRecords(in Input) (out Clouds) {
	if in.PowerSaving == nil || !in.PowerSaving.Asked || !in.PowerSaving.Makes {
		return out
	}
	pods := in.ordinalsWithPods()
	sample := in.PowerSaving.sample(in.Replicas)
	last := in.lastSample(pods, sample)
	for ordinal := range in.Replicas {
		f := in.PowerSaving.facts(ordinal, pods[ordinal], sample)
		f.last = ordinal == last
		name := in.PowerSaving.Names[ordinal]
		switch recordSteps.Decide(f) {
		case deleteRecord:
			out.Delete = append(out.Delete, name)
		case remakeRecord:
			out.Make = append(out.Make, Cloud{Name: name, Like: name, Anew: true})
		case replaceRecord:
			out.Make = append(out.Make, Cloud{Name: name, Like: sample, Anew: true})
		case makeRecord:
			out.Make = append(out.Make, Cloud{Name: name, Like: sample})
		case describeRecord:
			out.Describe = append(out.Describe, name)
		}
	}
	return out
}

// lastSample returns the first ordinal whose record would be made anew, if others are made in the same pass and no other record of the
// present spec stays; -1 for none.
func (in *Input) lastSample(pods map[int]bool, sample string) int {
	first, others := -1, 0
	for ordinal := range in.Replicas {
		f := in.PowerSaving.facts(ordinal, pods[ordinal], sample)
		switch step := recordSteps.Decide(f); {
		case step == remakeRecord && first < 0:
			first = ordinal
		case step == remakeRecord, step == makeRecord, step == replaceRecord:
			others++
		case f.node.Registered == node.Yes:
			return -1
		}
	}
	if others == 0 {
		return -1
	}
	return first
}
