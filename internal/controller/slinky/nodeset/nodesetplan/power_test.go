// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// powers returns nodes by ordinal with states such as IDLE+POWERED_DOWN, with a reason behind a colon.
func powers(said map[int]string) map[int]nodesetplan.PowerNode {
	out := map[int]nodesetplan.PowerNode{}
	for ordinal, text := range said {
		state, reason, _ := strings.Cut(text, ":")
		out[ordinal] = nodesetplan.PowerNode{
			Name: fmt.Sprintf("w-%d", ordinal), State: node.Parse(strings.Split(state, "+")), Reason: node.Reason{Text: reason, SetBy: "slurm"},
		}
	}
	return out
}

const (
	off       = "IDLE+POWERED_DOWN+DYNAMIC_NORM"
	goingOff  = "IDLE+POWERING_DOWN+DYNAMIC_NORM"
	comes     = "ALLOCATED+NOT_RESPONDING+POWERING_UP+DYNAMIC_NORM"
	late      = "DOWN+POWERED_DOWN+DYNAMIC_NORM:ResumeTimeout reached"
	inService = "IDLE+DYNAMIC_NORM"
)

func TestMakeWhereSlurmPowersWorkers(t *testing.T) {
	type slurm = map[int]string
	tests := []struct {
		name   string
		pods   []workerpod.Pod
		silent bool
		slurm  slurm
		makes  bool
		// replicas is 4 if it is zero, and initial 1 if it is zero, 0 if it is less.
		replicas, initial int
		want              nodesetplan.Plan
	}{
		{name: "at first the workers run that the spec says", initial: 2, want: nodesetplan.Plan{Desired: 2, Create: places(0, 1)}},
		{name: "one worker runs at least, or nobody would know what machines there are", initial: -1, want: nodesetplan.Plan{Desired: 1, Create: places(0)}},
		{name: "no worker runs to show what another has shown", initial: 2, makes: true, slurm: slurm{1: cloud}, want: nodesetplan.Plan{}},
		{name: "a worker runs to show its machine where Slurm makes no records", initial: 2, slurm: slurm{1: cloud}, want: nodesetplan.Plan{Desired: 1, Create: places(0)}},
		{name: "no worker is made before Slurm has answered", silent: true, want: nodesetplan.Plan{Desired: 2}},
		{name: "while Slurm is silent all workers stay", silent: true, pods: []workerpod.Pod{aPod(0), aPod(3)}, want: nodesetplan.Plan{Desired: 2}},
		{name: "what is powered down is not made", slurm: slurm{0: off, 1: off}, want: nodesetplan.Plan{}},
		{name: "what Slurm powers up is made at once", slurm: slurm{0: off, 1: off, 2: comes, 3: comes}, want: nodesetplan.Plan{Desired: 2, Create: places(2, 3)}},
		{name: "the pod of what is powered down goes", slurm: slurm{0: inService, 1: goingOff, 2: off}, pods: []workerpod.Pod{aPod(0), aPod(1), aPod(2)},
			want: nodesetplan.Plan{Desired: 1, PowerDown: []string{"w-1", "w-2"}}},
		{name: "the mark of a pod does not matter when it is powered down", slurm: slurm{0: off}, pods: []workerpod.Pod{aPod(0, updating)}, want: nodesetplan.Plan{PowerDown: []string{"w-0"}}},
		{name: "the pod of what is powered down does not go while a job is there", slurm: slurm{0: "MIXED+POWERING_DOWN"}, pods: []workerpod.Pod{aPod(0)}, want: nodesetplan.Plan{Desired: 1}},
		{name: "an old pod that still ends keeps its name", slurm: slurm{0: comes}, pods: []workerpod.Pod{aPod(0, terminating)}, want: nodesetplan.Plan{Desired: 1}},
		{name: "a worker that came too late goes", slurm: slurm{0: inService, 1: late}, pods: []workerpod.Pod{aPod(0), aPod(1, pending)},
			want: nodesetplan.Plan{Desired: 1, PowerDown: []string{"w-1"}}},
		{name: "a worker in service whose pod is gone is made again", slurm: slurm{0: inService, 1: "DOWN+NOT_RESPONDING"}, pods: []workerpod.Pod{aPod(0)},
			want: nodesetplan.Plan{Desired: 2, Create: places(1)}},
		{name: "a worker that has not registered yet stays", slurm: slurm{0: off}, pods: []workerpod.Pod{aPod(2, unready)}, want: nodesetplan.Plan{Desired: 1}},
		{name: "no worker is made beyond replicas", replicas: 2, slurm: slurm{0: off, 1: off, 2: comes}, want: nodesetplan.Plan{}},
		{name: "a worker beyond replicas is retired", replicas: 1, slurm: slurm{0: inService, 1: inService}, pods: []workerpod.Pod{aPod(0), aPod(1)},
			want: nodesetplan.Plan{Desired: 1, Retire: retire(workerpod.ScaleIn, "w-1")}},
		{name: "a worker beyond replicas that is powered down goes at once", replicas: 1, slurm: slurm{0: inService, 1: off}, pods: []workerpod.Pod{aPod(0), aPod(1)},
			want: nodesetplan.Plan{Desired: 1, PowerDown: []string{"w-1"}}},
		{name: "a rolling update replaces the workers that run", slurm: slurm{0: inService, 1: off}, pods: []workerpod.Pod{aPod(0, old)},
			want: nodesetplan.Plan{Desired: 1, Retire: retire(workerpod.Update, "w-0")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			initial := max(0, tt.initial)
			if tt.initial == 0 {
				initial = 1
			}
			in := nodesetplan.Input{
				Now: noon, Revision: "new", Rolling: true, MaxUnavailable: 1, Replicas: 4, Pods: tt.pods,
				PowerSaving: &nodesetplan.PowerSaving{Initial: initial, Before: 2, Asked: !tt.silent, Makes: tt.makes, Nodes: powers(tt.slurm)},
			}
			for ordinal, n := range in.PowerSaving.Nodes {
				n.Registered = node.Yes
				in.PowerSaving.Nodes[ordinal] = n
			}
			if tt.replicas > 0 {
				in.Replicas = tt.replicas
			}
			if diff := cmp.Diff(tt.want, nodesetplan.Make(in)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNodesToResume(t *testing.T) {
	in := nodesetplan.Input{Replicas: 8, Pods: []workerpod.Pod{aPod(7)}, PowerSaving: &nodesetplan.PowerSaving{Asked: true, Nodes: powers(map[int]string{
		0: late,
		1: "DOWN+POWERED_DOWN:bad disk : ResumeTimeout reached",
		2: "DOWN+POWERED_DOWN:slurm-operator: Pod is terminating",
		3: "IDLE+DRAIN+POWERED_DOWN:slurm-operator: Node was cordoned",
		4: "IDLE+DRAIN+POWERED_DOWN:bad disk",
		5: "DOWN+DRAIN+POWERED_DOWN:ResumeTimeout reached",
		6: off,
		7: late, // its pod is there
		8: late, // beyond replicas
	})}}
	if got, want := nodesetplan.NodesToResume(in), []string{"w-0", "w-2", "w-3"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	in.PowerSaving.Asked = false
	if got := nodesetplan.NodesToResume(in); got != nil {
		t.Errorf("%v, although Slurm is silent", got)
	}
}

// TestNothingHappensWhileSlurmIsSilent holds whatever pods there are, and whatever Slurm reported before.
func TestNothingHappensWhileSlurmIsSilent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replicas := rapid.IntRange(0, 6).Draw(t, "replicas")
		in := nodesetplan.Input{Now: noon, Revision: "new", Replicas: replicas, PowerSaving: &nodesetplan.PowerSaving{Initial: rapid.IntRange(0, 6).Draw(t, "initial")}}
		for ordinal := range replicas {
			if rapid.Bool().Draw(t, "there") {
				in.Pods = append(in.Pods, aPod(ordinal))
			}
		}
		plan := nodesetplan.Make(in)
		if len(plan.Create)+len(plan.PowerDown)+len(plan.Retire)+len(plan.Delete)+len(nodesetplan.NodesToResume(in)) > 0 {
			t.Errorf("%+v", plan)
		}
	})
}
