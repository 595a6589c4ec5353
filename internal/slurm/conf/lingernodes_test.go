// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNodesLinger(t *testing.T) {
	const drained = ` State=DRAIN Reason="its line in slurm.conf is to go"`
	free := func(names ...string) func(string) bool {
		return func(name string) bool { return slices.Contains(names, name) }
	}
	for _, tt := range []struct {
		name, before, after string
		over                func(string) bool
		want                string
		linger              []string
	}{
		{"a node that stays stays as it is", "NodeName=a CPUs=4", "NodeName=a CPUs=8", free(), "NodeName=a CPUs=8", nil},
		{"a node that goes is drained", "NodeName=a CPUs=4\nNodeName=b CPUs=2", "NodeName=b CPUs=2", free(), "NodeName=a CPUs=4" + drained + "\nNodeName=b CPUs=2", []string{"a"}},
		{"a node that no job needs goes", "NodeName=a CPUs=4", "", free("a"), "", nil},
		{"a node that goes keeps its defaults, and takes none of others", "NodeName=DEFAULT CPUs=4\nNodeName=a", "NodeName=DEFAULT CPUs=8\nNodeName=b", free(), "NodeName=a CPUs=4" + drained + "\nNodeName=DEFAULT CPUs=8\nNodeName=b", []string{"a"}},
		{"a state that the node had gives way", "NodeName=a State=DOWN", "", free(), "NodeName=a" + drained, []string{"a"}},
		{"a line of many loses some", "NodeName=n[1-4] CPUs=4", "NodeName=n[2-3] CPUs=4", free("n4"), "NodeName=n1 CPUs=4" + drained + "\nNodeName=n[2-3] CPUs=4", []string{"n1"}},
		{
			"each node of a line keeps its own address and port", "NodeName=n[1-3] NodeAddr=10.0.0.[7,5,9] Port=[7001-7003] CPUs=4", "NodeName=n2 CPUs=4", free(),
			"NodeName=n1 NodeAddr=10.0.0.7 Port=7001 CPUs=4" + drained + "\nNodeName=n3 NodeAddr=10.0.0.9 Port=7003 CPUs=4" + drained + "\nNodeName=n2 CPUs=4", []string{"n1", "n3"},
		},
		{"a node without a slurmd stays what it is", "NodeName=a State=EXTERNAL", "", free(), "NodeName=a State=EXTERNAL", []string{"a"}},
		{"a node that is to come has no jobs", "NodeName=a State=FUTURE", "", free(), "", nil},
		{"a node that goes stands before the partitions", "NodeName=a\nPartitionName=p Nodes=ALL", "PartitionName=p Nodes=ALL", free(), "NodeName=a" + drained + "\nPartitionName=p Nodes=ALL", []string{"a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before, _ := Parse(Slurm, tt.before)
			after, _ := Parse(Slurm, tt.after)
			wanted := after.Clone()
			if names := after.LingerNodes(before, tt.over); !slices.Equal(names, tt.linger) {
				t.Errorf("%v linger", names)
			}
			if diff := cmp.Diff(tt.want, statements(t, after)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			wanted.LingerNodes(after, tt.over)
			if diff := cmp.Diff(text(t, after), text(t, wanted)); diff != "" {
				t.Errorf("it does not stay as it is (-first +second):\n%s", diff)
			}
		})
	}
}

func TestALingeringPartitionKeepsNodesThatLinger(t *testing.T) {
	never := func(string) bool { return false }
	before, _ := Parse(Slurm, "NodeName=a\nPartitionName=p Nodes=a\n")
	after, _ := Parse(Slurm, "PartitionName=q Nodes=ALL\n")
	after.LingerNodes(before, never)
	after.Linger(before, never, never)
	if got := statements(t, after); !strings.Contains(got, "PartitionName=p Nodes=a State=DRAIN") {
		t.Errorf("it is\n%s", got)
	}
}

func FuzzLingerNodes(f *testing.F) {
	f.Add("NodeName=DEFAULT CPUs=2\nNodeName=n[1-3] NodeAddr=10.0.0.[1-3] Port=[1-3]\n", "NodeName=n2\n")
	f.Fuzz(func(t *testing.T, first, second string) {
		before, _ := Parse(Slurm, first)
		after, _ := Parse(Slurm, second)
		if before == nil || after == nil || before.Check() != nil || after.Check() != nil {
			return
		}
		never := func(string) bool { return false }
		wrong := len(after.CheckNames())
		again := after.Clone()
		after.LingerNodes(before, never)
		if found := len(after.CheckNames()); found > wrong {
			t.Errorf("slurmctld would end with what lingers: %v", after.CheckNames())
		}
		again.LingerNodes(after, never)
		if diff := cmp.Diff(text(t, after), text(t, again)); diff != "" {
			t.Errorf("it does not stay as it is (-first +second):\n%s", diff)
		}
	})
}
