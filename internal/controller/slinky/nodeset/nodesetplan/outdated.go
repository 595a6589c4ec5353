// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan

import (
	"slices"

	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// Slurm takes what a slurmd registers with only into a record that it makes anew. A slurmd that registers later with less memory or other
// features runs under the old record, and Slurm gives jobs what is not there any more. So the record of a worker is deleted between its pod
// and the next, when that registers with something else.

// NewWorker is a worker that is about to be made.
type NewWorker struct {
	// Slurm is the name of its Slurm node, Node the Kubernetes node that it must run on; empty for any.
	Slurm, Node string
}

// recordFate is what becomes of the record that a new worker would register into.
type recordFate int8

const (
	recordStays recordFate = iota
	recordHeld
	recordGoes
)

// recordFacts are a new worker, what it registers with, and the record that Slurm has; nil when it has none.
type recordFacts struct {
	*OrphanedNode
	coming       NewWorker
	registration string
	gone         func(kubeNode string) bool
}

//nolint:gochecknoglobals // a constant list
var recordFates = rule.List[*recordFacts, recordFate]{
	Question: "Is the record of a node deleted before its next worker is made?",
	Rules: []rule.Rule[*recordFacts, recordFate]{
		{
			Name: "there is none", Does: "no", Why: "Slurm makes one when the worker registers",
			When: func(f *recordFacts) bool { return f.OrphanedNode == nil },
		},
		{
			Name: "the next worker registers with the same, on the same machine", Does: "no", Why: "the record is right; one of which it is not known what it was registered with stays, too",
			When: func(f *recordFacts) bool { return !f.isOutdated() },
		},
		{
			Name: "Slurm powers it up", Does: "no", Why: "Slurm waits for it, and may have given it a job",
			When: func(f *recordFacts) bool { return f.State.Has(node.PoweringUp) },
		},
		{
			Name: "jobs are there, or may be", Does: "no, and the worker is made all the same", Why: "Slurm deletes no record of a busy node",
			When: func(f *recordFacts) bool { return f.State.Busy() != node.No }, Then: rule.Is[*recordFacts](recordHeld),
		},
		{
			Name: "somebody else has drained, set down or reserved it", Does: "no, and the worker is made all the same", Why: "what they said about it would go with the record",
			When: func(f *recordFacts) bool { return f.Held() }, Then: rule.Is[*recordFacts](recordHeld),
		},
		{
			Name: "otherwise", Does: "yes", Why: "the worker would run under a record of something else, and Slurm would give jobs what is not there",
			Then: rule.Is[*recordFacts](recordGoes),
		},
	},
}

// isOutdated reports whether the record is from another registration or another machine, or the last slurmd offered too little for it.
func (f *recordFacts) isOutdated() bool {
	was := f.Comment
	moved := was.Node != "" && (f.coming.Node != "" && f.coming.Node != was.Node || f.coming.Node == "" && f.gone(was.Node))
	return f.State.Has(node.InvalidReg) || moved || was.Registration != "" && was.Registration != f.registration
}

// Outdated returns the names of the records to delete before workers are made that register with registration: they were registered with
// something else, or on another machine, or the last slurmd offered too little for them. held are outdated ones that must stay.
func Outdated(records []OrphanedNode, coming []NewWorker, registration string, gone func(kubeNode string) bool) (outdated, held []string) {
	byName := make(map[string]*OrphanedNode, len(records))
	for i := range records {
		byName[records[i].Name] = &records[i]
	}
	f := &recordFacts{registration: registration, gone: gone}
	for _, c := range coming {
		f.OrphanedNode, f.coming = byName[c.Slurm], c
		switch recordFates.Decide(f) {
		case recordGoes:
			outdated = append(outdated, c.Slurm)
		case recordHeld:
			held = append(held, c.Slurm)
		case recordStays:
		}
	}
	slices.SortFunc(outdated, hostlist.Compare)
	slices.SortFunc(held, hostlist.Compare)
	return outdated, held
}
