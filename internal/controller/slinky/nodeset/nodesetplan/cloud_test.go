// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

const cloud = "IDLE+CLOUD+POWERED_DOWN+DYNAMIC_NORM"

func TestCloudRecords(t *testing.T) {
	type slurm = map[int]string
	names := map[int]string{}
	for ordinal := range 4 {
		names[ordinal] = fmt.Sprintf("w-%d", ordinal)
	}
	like := func(sample string, made ...string) (out []nodesetplan.Cloud) {
		for _, name := range made {
			out = append(out, nodesetplan.Cloud{Name: name, Like: sample})
		}
		return out
	}
	each := func(names ...string) (out []nodesetplan.Cloud) {
		for _, name := range names {
			out = append(out, nodesetplan.Cloud{Name: name, Like: name, Anew: true})
		}
		return out
	}
	anew := func(name, sample string) []nodesetplan.Cloud {
		return []nodesetplan.Cloud{{Name: name, Like: sample, Anew: true}}
	}
	edit := func(edit func(*nodesetplan.PowerNode)) func(map[int]nodesetplan.PowerNode) {
		return func(nodes map[int]nodesetplan.PowerNode) {
			n := nodes[1]
			edit(&n)
			nodes[1] = n
		}
	}
	other := edit(func(n *nodesetplan.PowerNode) { n.Registered = node.No })
	tests := []struct {
		name    string
		pods    []workerpod.Pod
		silent  bool
		old     bool
		slurm   slurm
		edit    func(map[int]nodesetplan.PowerNode)
		initial int
		// replicas is 4 where it is 0.
		replicas int
		want     nodesetplan.Clouds
	}{
		{name: "nothing is known of the machines yet"},
		{name: "Slurm is silent", silent: true, slurm: slurm{0: off}},
		{name: "all that never ran are made like one that does", pods: []workerpod.Pod{aPod(0)}, slurm: slurm{0: inService}, want: nodesetplan.Clouds{Make: like("w-0", "w-1", "w-2", "w-3")}},
		{name: "no records are made for ordinals whose pods are there", pods: []workerpod.Pod{aPod(0), aPod(1), aPod(2)}, initial: 3, slurm: slurm{0: inService}, want: nodesetplan.Clouds{Make: like("w-0", "w-3")}},
		{name: "Slurm makes no such records", old: true, slurm: slurm{0: off}},
		{name: "a record that has run is made anew", slurm: slurm{0: cloud, 1: off, 2: comes, 3: cloud}, want: nodesetplan.Clouds{Make: anew("w-1", "w-1")}},
		{name: "of all that have run one is left that the others can be made like", slurm: slurm{0: off, 1: off, 2: off, 3: off}, want: nodesetplan.Clouds{Make: each("w-1", "w-2", "w-3")}},
		{name: "the last record that has run is made anew when the others are", slurm: slurm{0: off, 1: cloud, 2: cloud, 3: cloud}, want: nodesetplan.Clouds{Make: each("w-0")}},
		{name: "no record that has run is left where another worker runs", slurm: slurm{0: off, 1: inService, 2: off, 3: cloud}, want: nodesetplan.Clouds{Make: each("w-0", "w-2")}},
		{name: "a record that has run is left as the model of those that never ran", slurm: slurm{0: off}, want: nodesetplan.Clouds{Make: like("w-0", "w-1", "w-2", "w-3")}},
		{name: "no record is left where there is only one", replicas: 1, slurm: slurm{0: off}, want: nodesetplan.Clouds{Make: each("w-0")}},
		{name: "a record that has run at another spec is made like one of the present", edit: other, slurm: slurm{0: cloud, 1: cloud, 2: inService, 3: cloud}, want: nodesetplan.Clouds{Make: anew("w-1", "w-0")}},
		{name: "a record of another spec is deleted that runs at first", initial: 2, edit: func(nodes map[int]nodesetplan.PowerNode) {
			clear(nodes)
			nodes[1] = nodesetplan.PowerNode{Name: "w-1", State: node.Parse([]string{"IDLE", "CLOUD", "POWERED_DOWN"}), Described: true, Registered: node.No}
		},
			slurm: slurm{}, want: nodesetplan.Clouds{Delete: []string{"w-1"}}},
		{name: "a record of another spec stays until there is one of the present", edit: func(nodes map[int]nodesetplan.PowerNode) {
			clear(nodes)
			nodes[1] = nodesetplan.PowerNode{Name: "w-1", State: node.Parse([]string{"IDLE", "CLOUD", "POWERED_DOWN"}), Described: true, Registered: node.No}
		}},
		{name: "a pod of the record still ends", pods: []workerpod.Pod{aPod(1, terminating)}, slurm: slurm{0: cloud, 1: off, 2: cloud, 3: cloud}},
		{name: "Slurm powers the node down yet", slurm: slurm{0: cloud, 1: goingOff, 2: cloud, 3: cloud}},
		{name: "a job is on the node", slurm: slurm{0: cloud, 1: "MIXED+POWERED_DOWN", 2: cloud, 3: cloud}},
		{name: "the node is down", slurm: slurm{0: cloud, 1: late, 2: cloud, 3: cloud}},
		{name: "the node is drained", slurm: slurm{0: cloud, 1: "IDLE+DRAIN+POWERED_DOWN:bad disk", 2: cloud, 3: cloud}},
		{name: "the node is reserved", edit: edit(func(n *nodesetplan.PowerNode) { n.Reserved = true }), slurm: slurm{0: cloud, 1: off, 2: cloud, 3: cloud}},
		{name: "somebody else has written the comment of the record", edit: edit(func(n *nodesetplan.PowerNode) { n.Foreign = true }), slurm: slurm{0: cloud, 1: off, 2: cloud, 3: cloud}},
		{name: "a record does not say whose node it is", edit: edit(func(n *nodesetplan.PowerNode) { n.Described, n.Registered = false, node.Unknown }),
			slurm: slurm{0: cloud, 1: cloud, 2: cloud, 3: cloud}, want: nodesetplan.Clouds{Describe: []string{"w-1"}}},
		{name: "all is right", slurm: slurm{0: cloud, 1: cloud, 2: cloud, 3: cloud}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			nodes, replicas := powers(tt.slurm), tt.replicas
			if replicas == 0 {
				replicas = 4
			}
			for ordinal, n := range nodes {
				n.Described, n.Registered = true, node.Yes
				nodes[ordinal] = n
			}
			if tt.edit != nil {
				tt.edit(nodes)
			}
			in := nodesetplan.Input{Replicas: replicas, Pods: tt.pods, PowerSaving: &nodesetplan.PowerSaving{Initial: tt.initial, Asked: !tt.silent, Makes: !tt.old, Nodes: nodes, Names: names}}
			got := nodesetplan.CloudRecords(in)
			if diff := cmp.Diff(tt.want, got); diff != "" || got.Empty() != cmp.Equal(tt.want, nodesetplan.Clouds{}) {
				t.Error(diff)
			}
		})
	}
}
