// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

func TestPin(t *testing.T) {
	at := func(ordinal int, node string, options ...func(*workerpod.Pod)) workerpod.Pod {
		p := aPod(ordinal, options...)
		p.Node = node
		return p
	}
	tests := []struct {
		name   string
		before map[string]string
		pods   []workerpod.Pod
		want   map[int]string
	}{
		{"where a worker runs is where it comes back", nil, []workerpod.Pod{at(0, "a"), at(1, "b")}, map[int]string{0: "a", 1: "b"}},
		{"a worker that is away keeps its place", map[string]string{"0": "a", "1": "b"}, []workerpod.Pod{at(0, "a")}, map[int]string{0: "a", 1: "b"}},
		{"cordoning its node does not move it", map[string]string{"1": "c"}, nil, map[int]string{1: "c"}},
		{"a node that does not fit any more is left", map[string]string{"0": "d", "1": "gone"}, nil, map[int]string{}},
		{"a pod that waits for a node does not count", nil, []workerpod.Pod{at(0, "a", pending)}, map[int]string{}},
		{"ordinals that are no longer wanted are forgotten", map[string]string{"2": "a", "x": "a"}, nil, map[int]string{}},
		{"where it runs now counts more than where it ran", map[string]string{"0": "a"}, []workerpod.Pod{at(0, "b")}, map[int]string{0: "b"}},
		{"where another worker runs none comes back", map[string]string{"0": "a"}, []workerpod.Pod{at(1, "a")}, map[int]string{1: "a"}},
		{"where another worker runs not even one comes back that waits for the node already", map[string]string{"0": "a", "1": "a"}, []workerpod.Pod{at(0, "a", pending), at(1, "a")}, map[int]string{1: "a"}},
		{"where another worker is just ending none comes back", map[string]string{"0": "a"}, []workerpod.Pod{at(1, "a", terminating)}, map[int]string{1: "a"}},
		{"where one of those that are too many runs none comes back", map[string]string{"0": "a"}, []workerpod.Pod{at(7, "a")}, map[int]string{7: "a"}},
		{"of two that are away one comes back", map[string]string{"0": "a", "1": "a"}, nil, map[int]string{0: "a"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := nodesetplan.Pin(tt.before, tt.pods, 2, kube(nodesetplan.Starts, nodesetplan.Belongs, nodesetplan.Fits, nodesetplan.Unfit), false)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := nodesetplan.Pinned(map[int]string{3: "a"}); got["3"] != "a" || nodesetplan.Pinned(nil) != nil {
		t.Errorf("in the status it is %v", got)
	}
}

func TestPinsToNodesThatWorkersShare(t *testing.T) {
	at := func(ordinal int, node string, options ...func(*workerpod.Pod)) workerpod.Pod {
		p := aPod(ordinal, options...)
		p.Node = node
		return p
	}
	unschedulable := func(p *workerpod.Pod) { p.Unschedulable = true }
	both := func(node string) map[int]string { return map[int]string{0: node, 1: node} }
	tests := []struct {
		name string
		node string
		pods []workerpod.Pod
		want map[int]string
	}{
		{"two workers may be away from one node", "a", nil, both("a")},
		{"a worker comes back where the other one runs", "a", []workerpod.Pod{at(0, "a", pending), at(1, "a")}, both("a")},
		{"a worker does not come back where there is no room for both", "a", []workerpod.Pod{at(0, "a", pending, unschedulable), at(1, "a")}, map[int]string{1: "a"}},
		{"a node that is not ready may have room later", "b", []workerpod.Pod{at(0, "b", pending, unschedulable), at(1, "b")}, both("b")},
		{"a node that is cordoned may have room later", "c", []workerpod.Pod{at(0, "c", pending, unschedulable), at(1, "c")}, both("c")},
		{"a node on which a worker is just ending may have room later", "a", []workerpod.Pod{at(0, "a", pending, unschedulable), at(1, "a"), at(2, "a", terminating)},
			map[int]string{0: "a", 1: "a", 2: "a"}},
		{"where there is no other worker its own waits for room", "a", []workerpod.Pod{at(0, "a", pending, unschedulable)}, both("a")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := map[string]string{"0": tt.node, "1": tt.node}
			got := nodesetplan.Pin(before, tt.pods, 2, kube(nodesetplan.Starts, nodesetplan.Belongs, nodesetplan.Fits, nodesetplan.Unfit), true)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPinnedWorkers(t *testing.T) {
	in := nodesetplan.Input{Now: noon, Replicas: 2, Revision: "new", Pins: map[int]string{0: "a"}}
	check(t, in, nodesetplan.Plan{Create: []workerpod.Place{{Ordinal: 0, Node: "a"}, {Ordinal: 1}}})
	waiting := func(node string) workerpod.Pod { p := aPod(0, pending); p.Node = node; return p }
	in.Pods = []workerpod.Pod{waiting("a"), aPod(1)}
	check(t, in, nodesetplan.Plan{})
	in.Pods = []workerpod.Pod{waiting("gone"), aPod(1)}
	check(t, in, nodesetplan.Plan{Delete: []string{"w-0"}})
}
