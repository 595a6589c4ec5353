// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

func TestWhichRecordsGoBeforeAWorkerIsMade(t *testing.T) {
	const kept, deleted, held = "kept", "deleted", "held"
	other := func(r *nodesetplan.OrphanedNode) { r.Comment.Registration = "other" }
	reason := func(text string) func(*nodesetplan.OrphanedNode) {
		return func(r *nodesetplan.OrphanedNode) { r.Reason.Text, r.State = text, state(r.State, "DRAIN") }
	}
	down := func(text string) func(*nodesetplan.OrphanedNode) {
		return func(r *nodesetplan.OrphanedNode) { r.Reason.Text, r.State = text, state(r.State, "DOWN") }
	}
	lost := func(r *nodesetplan.OrphanedNode) { r.State = state(r.State, "DOWN", "NOT_RESPONDING") }
	tests := []struct {
		name   string
		record []func(*nodesetplan.OrphanedNode)
		bound  string // the Kubernetes node of the worker to be
		want   string
	}{
		{name: "a record of the same registration stays", want: kept},
		{name: "a record of another registration goes", record: []func(*nodesetplan.OrphanedNode){other}, want: deleted},
		{name: "a record of another registration goes after our own drain", record: []func(*nodesetplan.OrphanedNode){other, reason("slurm-operator: Pod is terminating")}, want: deleted},
		{name: "a record of another registration goes after Slurm has given the node up", record: []func(*nodesetplan.OrphanedNode){other, down("Not responding"), lost}, want: deleted},
		{name: "a record of another registration goes after our own drain when Slurm has given the node up, too", record: []func(*nodesetplan.OrphanedNode){other, reason("slurm-operator: Pod is terminating : Not responding"), lost}, want: deleted},
		{name: "a record of another registration goes when 24.11 had a reason left over", record: []func(*nodesetplan.OrphanedNode){other, down("was a bad disk : Not responding"), lost}, want: deleted},
		{name: "a record that Slurm powers up stays", record: []func(*nodesetplan.OrphanedNode){other, func(r *nodesetplan.OrphanedNode) { r.State = state(r.State, "POWERING_UP") }}, want: kept},
		{name: "an administrator who set the node down holds its record", record: []func(*nodesetplan.OrphanedNode){other, down("bad disk")}, want: held},
		{name: "a record whose registration is not known stays", record: []func(*nodesetplan.OrphanedNode){func(r *nodesetplan.OrphanedNode) { r.Comment.Registration = "" }}, want: kept},
		{name: "jobs hold a record", record: []func(*nodesetplan.OrphanedNode){other, func(r *nodesetplan.OrphanedNode) { r.State = node.Parse([]string{"MIXED"}) }}, want: held},
		{name: "what may be jobs holds a record", record: []func(*nodesetplan.OrphanedNode){other, func(r *nodesetplan.OrphanedNode) { r.State = node.Parse([]string{"IDLE", "HIBERNATING"}) }}, want: held},
		{name: "an administrator's drain holds a record", record: []func(*nodesetplan.OrphanedNode){other, reason("bad disk")}, want: held},
		{name: "an administrator's drain holds a record after Slurm has given up the node", record: []func(*nodesetplan.OrphanedNode){other, reason("bad disk : Not responding"), lost}, want: held},
		{name: "a drain without a reason holds a record after Slurm has given up the node", record: []func(*nodesetplan.OrphanedNode){other, reason("Not responding"), lost}, want: held},
		{name: "a drain without a reason holds a record", record: []func(*nodesetplan.OrphanedNode){other, reason("")}, want: held},
		{name: "a reason that is left over does not hold a record", record: []func(*nodesetplan.OrphanedNode){other, func(r *nodesetplan.OrphanedNode) { r.Reason.Text = "was a bad disk" }}, want: deleted},
		{name: "a reservation of somebody's holds a record", record: []func(*nodesetplan.OrphanedNode){other, func(r *nodesetplan.OrphanedNode) { r.Reserved = true }}, want: held},
		{name: "a record for which slurmd offered too little goes, with Slurm's own drain",
			record: []func(*nodesetplan.OrphanedNode){func(r *nodesetplan.OrphanedNode) { r.State = state(r.State, "INVALID_REG") }, reason("Low RealMemory (reported:400 < 100.00% of configured:600)")}, want: deleted},
		{name: "a record of another machine goes", bound: "k2", want: deleted},
		{name: "a record of the same machine stays", bound: "k1", want: kept},
		{name: "a record of a machine that is gone goes", record: []func(*nodesetplan.OrphanedNode){func(r *nodesetplan.OrphanedNode) { r.Comment.Node = "lost" }}, want: deleted},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := nodesetplan.OrphanedNode{
				Name: "w-0", State: node.Parse([]string{"IDLE"}),
				Comment: node.Comment{PodName: "w-0", Node: "k1", NodeSetName: "w", Registration: "same"},
			}
			for _, change := range tt.record {
				change(&r)
			}
			outdated, still := nodesetplan.Outdated([]nodesetplan.OrphanedNode{r, {Name: "w-1", State: node.Parse([]string{"IDLE"})}},
				[]nodesetplan.NewWorker{{Slurm: "w-0", Node: tt.bound}, {Slurm: "w-2"}}, "same", func(name string) bool { return name == "lost" })
			got := kept
			switch {
			case strings.Join(outdated, " ") == "w-0":
				got = deleted
			case strings.Join(still, " ") == "w-0":
				got = held
			}
			if got != tt.want || len(outdated)+len(still) > 1 {
				t.Errorf("it is %s, want %s: %v, %v", got, tt.want, outdated, still)
			}
		})
	}
}

// state returns before with more words; a node that is DOWN is not IDLE.
func state(before node.State, words ...string) node.State {
	all := append(strings.FieldsFunc(before.String(), func(r rune) bool { return r == '+' || r == ' ' || r == ',' }), words...)
	if slices.Contains(all, "DOWN") {
		all = slices.DeleteFunc(all, func(word string) bool { return word == "IDLE" })
	}
	return node.Parse(all)
}
