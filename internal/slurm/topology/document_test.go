// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/topology"
)

// on is a node of fabric root behind these switches.
func on(name string, switches ...string) topology.Node {
	return topology.Node{Name: name, Fabric: "root", Location: topology.Location{Switches: switches}}
}

func TestTree(t *testing.T) {
	long := strings.Repeat("x", 63)
	tests := []struct {
		name  string
		nodes []topology.Node
		want  string
	}{
		{name: "no nodes make no tree"},
		{
			name: "leaves below spines below the root, and what nobody knows",
			nodes: []topology.Node{
				on("w-3"), on("w-0", "leaf1", "spine"), on("w-10", "leaf2", "spine"), on("w-2", "leaf1", "spine"), on("w-1", "leaf1", "spine"),
			},
			want: "SwitchName=leaf1 Nodes=w-[0-2]\nSwitchName=leaf2 Nodes=w-10\nSwitchName=root Switches=root.unknown,spine\n" +
				"SwitchName=root.unknown Nodes=w-3\nSwitchName=spine Switches=leaf[1-2]\n",
		},
		{
			name:  "fabrics are not connected",
			nodes: []topology.Node{on("w-0", "leaf1"), {Name: "g-0", Fabric: "ib"}},
			want:  "SwitchName=ib Switches=ib.unknown\nSwitchName=ib.unknown Nodes=g-0\nSwitchName=leaf1 Nodes=w-0\nSwitchName=root Switches=leaf1\n",
		},
		{
			name:  "a leaf named like the root, and one named like its spine",
			nodes: []topology.Node{on("w-0", "root"), on("w-1", "a", "a")},
			want: "SwitchName=root Switches=root.tier-1.root,root.tier-2.a\nSwitchName=root.tier-1.a Nodes=w-1\n" +
				"SwitchName=root.tier-1.root Nodes=w-0\nSwitchName=root.tier-2.a Switches=root.tier-1.a\n",
		},
		{
			name:  "of spines that contradict each other the first counts, and a spine more than none",
			nodes: []topology.Node{on("w-0", "leaf", "s2"), on("w-1", "leaf", "s1"), on("w-2", "leaf")},
			want:  "SwitchName=leaf Nodes=w-[0-2]\nSwitchName=root Switches=s1\nSwitchName=s1 Switches=leaf\n",
		},
		{
			name:  "names that Slurm would not take",
			nodes: []topology.Node{on("w-0", "leaf12345678901234567890123"), on("w-1", "a,b c"), on("w-2", long)},
			want: "SwitchName=a_b_c_8e60a68961 Nodes=w-1\nSwitchName=leaf123456789012345678_607c532994 Nodes=w-0\n" +
				"SwitchName=root Switches=a_b_c_8e60a68961,leaf123456789012345678_607c532994," + long + "\nSwitchName=" + long + " Nodes=w-2\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, topology.Tree(tt.nodes)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBlocks(t *testing.T) {
	in := func(name, block string) topology.Node {
		return topology.Node{Name: name, Location: topology.Location{Block: block}}
	}
	got := topology.Blocks([]topology.Node{in("w-2", "b2"), in("w-1", "b1"), in("w-0", "b1"), in("w-4", ""), in("w-3", "unknown")}, 18)
	want := "BlockName=b1 Nodes=w-[0-1]\nBlockName=b2 Nodes=w-2\nBlockName=unknown Nodes=w-4\nBlockName=unknown_cd66701122 Nodes=w-3\nBlockSizes=18\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLocate(t *testing.T) {
	got := topology.Locate(map[string]string{"p/tier-0": "b", "p/tier-1": "leaf", "p/tier-2": "spine", "p/tier-4": "lost", "q/tier-3": "x"}, "p")
	if diff := cmp.Diff(topology.Location{Block: "b", Switches: []string{"leaf", "spine"}}, got); diff != "" {
		t.Error(diff)
	}
}

// written reads a document again: which nodes and which switches each unit has.
func written(t rapid.TB, text string) (nodes, switches map[string][]string) {
	nodes, switches = map[string][]string{}, map[string][]string{}
	for line := range strings.Lines(text) {
		head, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		_, name, found := strings.Cut(head, "=")
		key, list, _ := strings.Cut(value, "=")
		if !found || len(name) > 63 {
			t.Fatalf("line %q", line)
		}
		if head, _, _ := strings.Cut(head, "="); head == "BlockSizes" {
			continue
		}
		if nodes[name] != nil || switches[name] != nil {
			t.Fatalf("%s is there twice in\n%s", name, text)
		}
		members, err := hostlist.Expand(list, 1000)
		if err != nil || len(members) == 0 {
			t.Fatalf("line %q: %v", line, err)
		}
		if key == "Nodes" {
			nodes[name] = members
		} else {
			switches[name] = members
		}
	}
	return nodes, switches
}

func TestInvariants(t *testing.T) {
	label := rapid.OneOf(rapid.SampledFrom([]string{"a", "b", "DEFAULT", "all", "root", "ib", "root.unknown", "root.tier-1.a", "unknown", "s1", "s2", "s10"}),
		rapid.StringMatching(`[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?`), rapid.StringMatching(`[a-c]?[0-9]{17,23}`))
	rapid.Check(t, func(t *rapid.T) {
		var nodes []topology.Node
		var names []string
		for i := range rapid.IntRange(1, 20).Draw(t, "nodes") {
			n := topology.Node{Name: fmt.Sprintf("w-%d", i), Fabric: rapid.SampledFrom([]string{"root", "ib", "a"}).Draw(t, "fabric")}
			n.Location.Switches = rapid.SliceOfN(label, 0, 3).Draw(t, "switches")
			n.Location.Block = rapid.OneOf(rapid.Just(""), label).Draw(t, "block")
			nodes, names = append(nodes, n), append(names, n.Name)
		}
		tree, blocks := topology.Tree(nodes), topology.Blocks(nodes, 4)
		other := rapid.Permutation(nodes).Draw(t, "other order")
		if again := topology.Tree(other); again != tree {
			t.Fatalf("another order makes\n%s instead of\n%s", again, tree)
		}
		if again := topology.Blocks(other, 4); again != blocks {
			t.Fatalf("another order makes\n%s instead of\n%s", again, blocks)
		}
		has, children := written(t, tree)
		checkEach(t, "node", names, has)
		above := map[string]int{}
		for _, list := range children {
			for _, child := range list {
				if above[child]++; above[child] > 1 {
					t.Fatalf("%s hangs on two switches in\n%s", child, tree)
				}
				if has[child] == nil && children[child] == nil {
					t.Fatalf("%s is no switch in\n%s", child, tree)
				}
			}
		}
		for _, fabric := range nodes {
			if children[fabric.Fabric] == nil || above[fabric.Fabric] > 0 {
				t.Fatalf("%s is no root in\n%s", fabric.Fabric, tree)
			}
		}
		has, _ = written(t, blocks)
		checkEach(t, "node", names, has)
	})
}

// checkEach checks that each name is in exactly one of the lists, and nothing else is.
func checkEach(t *rapid.T, what string, names []string, lists map[string][]string) {
	var all []string
	for _, list := range lists {
		all = append(all, list...)
	}
	slices.Sort(all)
	want := slices.Sorted(slices.Values(names))
	if diff := cmp.Diff(want, all); diff != "" {
		t.Fatalf("each %s is not there once: %s", what, diff)
	}
}

func FuzzTree(f *testing.F) {
	f.Add("leaf", "spine", "root")
	f.Add("leaf12345678901234567890123", "a b,c\nSwitchName=x", "root")
	f.Add(strings.Repeat("x", 64), "x]", "")
	f.Fuzz(func(t *testing.T, leaf, spine, fabric string) {
		nodes := []topology.Node{
			{Name: "w-0", Fabric: fabric, Location: topology.Location{Switches: []string{leaf, spine}, Block: leaf}},
			{Name: "w-1", Fabric: fabric, Location: topology.Location{Switches: []string{spine}, Block: spine}},
		}
		for _, text := range []string{topology.Tree(nodes), topology.Blocks(nodes, 1)} {
			if has, _ := written(t, text); (len(has) == 1) != (leaf == spine) {
				t.Errorf("%q and %q become\n%s", leaf, spine, text)
			}
		}
	})
}

func BenchmarkTree10000(b *testing.B) {
	nodes := make([]topology.Node, 0, 10000)
	for i := range 10000 {
		nodes = append(nodes, on(fmt.Sprintf("worker-%d", i), fmt.Sprintf("leaf%d", i/16), fmt.Sprintf("spine%d", i/512)))
	}
	b.ReportAllocs()
	for b.Loop() {
		if topology.Tree(nodes) == "" {
			b.Fatal("nothing is written")
		}
	}
}
