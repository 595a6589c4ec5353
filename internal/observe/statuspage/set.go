// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// chunkNodes is the number of nodes that are updated together: a change of one node sends so many to the browser.
const chunkNodes = 50

// maxLabelled is the number of nodes up to which a grid shows their names.
const maxLabelled = 64

// maxLine is how many letters a line about a node has, so that the page stays small when there is much to show of each.
const maxLine = 300

// Set is the grid of a NodeSet, or of the nodes without one.
type Set struct {
	// Name is the name of the NodeSet; empty for nodes without one.
	Name string
	// Workers is in one line how many there are; empty for nodes without one.
	Workers string
	// Counts are the nodes by state, without the states in which there is none.
	Counts []Count
	// Labelled is true if cells show the names of their nodes.
	Labelled bool
	// Old is true if the states are not fresh.
	Old bool
	// Chunks are the cells, by name.
	Chunks [][]Cell
}

// Cell is a node in the grid.
type Cell struct {
	State state
	// Label is shown in the cell; empty in large grids.
	Label string
	// Details are lines: the name, the state, and what else there is to show.
	Details string
}

// sets makes the grids: those of NodeSets by name, and then that of the nodes without a worker if there are some.
func sets(f Facts) []Set {
	nodes := map[string][]Node{}
	for _, n := range f.Nodes {
		nodes[n.NodeSet] = append(nodes[n.NodeSet], n)
	}
	old := f.Slurm.Connected && f.Slurm.Trust != slurmcache.Fresh
	var out []Set
	for _, n := range f.NodeSets {
		set := grid(nodes[n.Name], old)
		set.Name = n.Name
		set.Workers = fmt.Sprintf("%d workers wanted, %d exist, %d ready", n.Status.Desired, n.Status.Replicas, n.Status.ReadyReplicas)
		out = append(out, set)
		delete(nodes, n.Name)
	}
	var others []Node
	for _, left := range nodes { // of NodeSets that are gone, too
		others = append(others, left...)
	}
	if len(others) > 0 {
		out = append(out, grid(others, old))
	}
	return out
}

// grid makes the cells of nodes.
func grid(nodes []Node, old bool) Set {
	set := Set{Old: old, Labelled: len(nodes) <= maxLabelled}
	counts := make([]int, states)
	var chunk []Cell
	for _, n := range byName(nodes) {
		c := cell(n)
		counts[c.State]++
		if set.Labelled {
			c.Label = n.Name
		}
		if chunk = append(chunk, c); len(chunk) == chunkNodes {
			set.Chunks, chunk = append(set.Chunks, chunk), nil
		}
	}
	if len(chunk) > 0 {
		set.Chunks = append(set.Chunks, chunk)
	}
	for s, n := range counts {
		if n > 0 {
			set.Counts = append(set.Counts, Count{State: state(s), Nodes: n})
		}
	}
	return set
}

func cell(n Node) Cell {
	c := Cell{State: unknown}
	said := "it is not known whether Slurm has it"
	switch n.Registered {
	case node.Yes:
		c.State, said = shown(n.State), n.State.String()
	case node.No:
		said = "Slurm does not have it"
	}
	reason := ""
	if n.Reason.Text != "" { // Slurm may name a user without one
		reason = n.Reason.String()
	}
	details := []byte(n.Name + "\n" + c.State.String() + " (" + said + ")")
	for _, line := range []struct{ head, text string }{
		{"Reason: ", reason}, {"Out of service: ", n.OutOfService}, {"Needs attention: ", n.Attention}, {"Plan: ", n.Plan},
	} {
		if line.text != "" {
			details = append(details, "\n"+line.head+oneLine(line.text)...)
		}
	}
	c.Details = string(details)
	return c
}

// oneLine returns a text without line breaks, cut to maxLine.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > maxLine {
		return string(runes[:maxLine]) + "…"
	}
	return text
}

// byName sorts nodes by name, and those whose names differ by a number at the end only by this number.
func byName(nodes []Node) []Node {
	type key struct {
		prefix string
		number uint64
		node   Node
	}
	keys := make([]key, len(nodes))
	for i, n := range nodes {
		prefix := strings.TrimRight(n.Name, "0123456789")
		number, _ := strconv.ParseUint(n.Name[len(prefix):], 10, 64) // the largest if it is too large
		keys[i] = key{prefix, number, n}
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.prefix, b.prefix), cmp.Compare(a.number, b.number), cmp.Compare(a.node.Name, b.node.Name))
	})
	out := make([]Node, len(keys))
	for i, k := range keys {
		out[i] = k.node
	}
	return out
}
