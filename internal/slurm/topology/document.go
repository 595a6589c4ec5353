// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
)

// unknown is the place of nodes whose place is not known.
const unknown = "unknown"

// A unit is a switch. Its tier is 1 for one that nodes hang on. Switches of the same name in different tiers or fabrics are
// different ones.
type unit struct {
	fabric string
	tier   int
	label  string
}

// Tiers of the switches that no label names: the switch of a fabric's nodes whose place is unknown, and the one above all others.
const (
	tierUnknown = 0
	tierRoot    = -1
)

func (u unit) compare(o unit) int {
	return cmp.Or(cmp.Compare(u.tier, o.tier), strings.Compare(u.fabric, o.fabric), strings.Compare(u.label, o.label))
}

// wish is how the switch is called where no other has the name.
func (u unit) wish() string {
	switch u.tier {
	case tierRoot:
		return u.fabric
	case tierUnknown:
		return u.fabric + "." + unknown
	}
	return u.label
}

// qualified is how it is called otherwise.
func (u unit) qualified() string { return u.fabric + ".tier-" + strconv.Itoa(u.tier) + "." + u.label }

// tree combines the locations of all nodes.
type tree struct {
	nodes   map[unit][]string
	parents map[unit]unit
}

// Tree writes the topology.conf of topology/tree: a line for each switch, in the order of their names. There is one root for each
// fabric, named like it. Nodes without a location hang on <fabric>.unknown below that root. Switches to which nothing leads are
// not written; Slurm 24.11 does not start with one. The order of the nodes does not matter.
func Tree(nodes []Node) string {
	t := tree{nodes: map[unit][]string{}, parents: map[unit]unit{}}
	for i := range nodes {
		t.add(&nodes[i])
	}
	children := t.children()
	called := t.names(children)
	lines := make([]string, 0, len(called))
	for u, name := range called {
		if nodes := t.nodes[u]; len(nodes) > 0 {
			lines = append(lines, "SwitchName="+name+" Nodes="+hostlist.Compress(nodes))
			continue
		}
		var below []string
		for _, child := range children[u] {
			below = append(below, called[child])
		}
		lines = append(lines, "SwitchName="+name+" Switches="+hostlist.Compress(below))
	}
	slices.Sort(lines)
	return text(lines)
}

// add hangs a node onto its switch, and each switch of its way onto the next.
func (t *tree) add(n *Node) {
	at := unit{fabric: n.Fabric, tier: tierUnknown}
	if len(n.Location.Switches) > 0 {
		at = unit{n.Fabric, 1, n.Location.Switches[0]}
	}
	t.nodes[at] = append(t.nodes[at], n.Name)
	for i, label := range n.Location.Switches[min(1, len(n.Location.Switches)):] {
		above := unit{n.Fabric, i + 2, label}
		t.below(at, above)
		at = above
	}
	t.below(at, unit{fabric: n.Fabric, tier: tierRoot})
}

// below records that one switch hangs on another. Where labels contradict each other, a named switch counts more than the root, and of
// several the first by name: a switch of a tree hangs on one.
func (t *tree) below(child, parent unit) {
	have, known := t.parents[child]
	if !known || have.tier == tierRoot || parent.tier != tierRoot && parent.compare(have) < 0 {
		t.parents[child] = parent
	}
}

// children are the switches below each switch, as far as nodes hang on them in the end.
func (t *tree) children() map[unit][]unit {
	out, seen := map[unit][]unit{}, map[unit]bool{}
	for u := range t.nodes {
		for !seen[u] && u.tier != tierRoot {
			seen[u] = true
			above := t.parents[u]
			out[above] = append(out[above], u)
			u = above
		}
	}
	return out
}

// names gives names to all switches.
func (t *tree) names(children map[unit][]unit) map[unit]string {
	units := slices.Collect(maps.Keys(t.nodes))
	units = slices.AppendSeq(units, maps.Keys(children))
	slices.SortFunc(units, unit.compare) // roots come first, then unknown ones: they keep their names
	wished := map[string]int{}
	for _, u := range units {
		wished[u.wish()]++
	}
	taken, out := names{}, make(map[unit]string, len(units))
	for _, u := range units {
		wish := u.wish()
		if wished[wish] > 1 && u.tier > tierUnknown {
			wish = u.qualified()
		}
		out[u] = taken.take(wish)
	}
	return out
}

// Blocks writes the topology.conf of topology/block, whose smallest block is of some size. Nodes without a block are in block
// unknown. The order of the nodes does not matter.
func Blocks(nodes []Node, size int) string {
	members := map[string][]string{}
	for i := range nodes {
		members[nodes[i].Location.Block] = append(members[nodes[i].Location.Block], nodes[i].Name)
	}
	taken, lines := names{}, make([]string, 0, len(members))
	for _, label := range slices.Sorted(maps.Keys(members)) { // the one without a label comes first
		lines = append(lines, "BlockName="+taken.take(cmp.Or(label, unknown))+" Nodes="+hostlist.Compress(members[label]))
	}
	slices.Sort(lines)
	return text(append(lines, "BlockSizes="+strconv.Itoa(size)))
}

// NoTree and NoBlocks are the topology.conf of topology/tree and of topology/block that name no node of a cluster. slurmctld starts with
// each of them, and warns of a node that it does not know.
const (
	NoTree   = "SwitchName=" + unknown + " Nodes=" + nobody + "\n"
	NoBlocks = "BlockName=" + unknown + " Nodes=" + nobody + "\nBlockSizes=1\n"
	// nobody is a node that does not exist.
	nobody = "nobody"
)

func text(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}
