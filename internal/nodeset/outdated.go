// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"slices"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// Slurm takes what a slurmd registers with only into a record that it makes anew. What is registered later with less memory
// or other features runs under the old record, and Slurm gives jobs what is not there any more. So the record of a worker
// goes between its pod and the next, when that registers with something else.

// Coming is a worker that is about to be made.
type Coming struct {
	// Slurm is the name of its Slurm node, Node the Kubernetes node that it must run on; empty for any.
	Slurm, Node string
}

// Outdated are the names of the records to delete before workers are made that register with this: those that were registered
// with something else, or on another machine, or for which the last slurmd offered too little. Held are outdated ones that
// must stay: jobs are there, or somebody else has a say in them. A record of which it is not known what it was registered with stays.
func Outdated(records []OrphanedNode, coming []Coming, registration string, gone func(kubeNode string) bool) (outdated, held []string) {
	byName := make(map[string]OrphanedNode, len(records))
	for _, r := range records {
		byName[r.Name] = r
	}
	for _, c := range coming {
		r, known := byName[c.Slurm]
		was := r.Comment
		moved := was.Node != "" && (c.Node != "" && c.Node != was.Node || c.Node == "" && gone(was.Node))
		switch {
		case !known, r.Invalid != node.Yes && !moved && (was.Registration == "" || was.Registration == registration):
		case r.Busy == node.No && !r.Held():
			outdated = append(outdated, r.Name)
		default:
			held = append(held, r.Name)
		}
	}
	slices.SortFunc(outdated, hostlist.Compare)
	slices.SortFunc(held, hostlist.Compare)
	return outdated, held
}

// Held says that somebody else has a say in a node whose worker is gone: it is reserved, or was drained or set down by somebody
// who is neither us nor Slurm. Slurm appends its own words to the reason of a node that it gives up, and 24.11 to one that was left
// over; it drains no node for that.
func (r OrphanedNode) Held() bool {
	text := r.Reason.Text
	switch {
	case r.Reserved:
		return true
	case r.Open == node.Yes, r.Reason.Ours(), r.Invalid == node.Yes && text != "":
		return false
	case r.Drained != node.No: // or not known
		return true
	case text == "":
		return r.Dead != node.Yes
	}
	return !strings.HasSuffix(text, notResponding)
}

// notResponding is Slurm's own reason for a node that is DOWN.
const notResponding = "Not responding"
