// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan_test

import (
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// on returns a worker of scaling mode DaemonSet on a Kubernetes node.
func on(node string, options ...func(*workerpod.Pod)) workerpod.Pod {
	p := aPod(-1, options...)
	p.Name, p.Daemon, p.Node, p.Hostname = "w-"+node, true, node, node
	return p
}

// kube returns Kubernetes nodes a, b, c and so on, each with its fit.
func kube(fits ...nodesetplan.Fit) []nodesetplan.KubeNode {
	var out []nodesetplan.KubeNode
	for i, fit := range fits {
		name := string(rune('a' + i))
		out = append(out, nodesetplan.KubeNode{Name: name, Hostname: name, Fit: fit})
	}
	return out
}

func onNodes(names ...string) []workerpod.Place {
	var out []workerpod.Place
	for _, n := range names {
		out = append(out, workerpod.Place{Node: n, Hostname: n})
	}
	return out
}

func TestDaemonSetMode(t *testing.T) {
	const starts, belongs, fits, stays, unfit = nodesetplan.Starts, nodesetplan.Belongs, nodesetplan.Fits, nodesetplan.Stays, nodesetplan.Unfit
	renamed := kube(starts, starts)
	renamed[0].Hostname = "gpu-a"
	elsewhere := on("a")
	elsewhere.Hostname = "b"
	double := on("b")
	double.Name = "w-x7k2p"
	tests := []struct {
		name    string
		nodes   []nodesetplan.KubeNode
		pods    []workerpod.Pod
		want    nodesetplan.Plan
		desired int
	}{
		{"one worker is made on each node where one can start", kube(starts, starts), nil, nodesetplan.Plan{Create: onNodes("a", "b")}, 2},
		{"at rest nothing is done", kube(starts, starts), []workerpod.Pod{on("a"), on("b")}, nodesetplan.Plan{}, 2},
		{"a node that is not ready is waited for", kube(starts, belongs), []workerpod.Pod{on("a")}, nodesetplan.Plan{}, 2},
		{"a cordoned node gets no worker, and none is missed there", kube(starts, fits), []workerpod.Pod{on("a")}, nodesetplan.Plan{}, 1},
		{"a cordoned node keeps the worker it has", kube(starts, fits), []workerpod.Pod{on("a"), on("b")}, nodesetplan.Plan{}, 2},
		{"a node tainted NoSchedule keeps the worker it has", kube(starts, stays), []workerpod.Pod{on("a"), on("b")}, nodesetplan.Plan{}, 2},
		{"a node that does not fit any more loses its worker, after a drain", kube(starts, unfit), []workerpod.Pod{on("a"), on("b", busy)},
			nodesetplan.Plan{Retire: retire(workerpod.ScaleIn, "w-b")}, 1},
		{"a node that is gone loses its worker, after a drain", kube(starts), []workerpod.Pod{on("a"), on("b")}, nodesetplan.Plan{Retire: retire(workerpod.ScaleIn, "w-b")}, 1},
		{"a node that fits again keeps the worker that was going", kube(starts, starts), []workerpod.Pod{on("a"), on("b", scaledIn)},
			nodesetplan.Plan{Unretire: []string{"w-b"}}, 2},
		{"a worker that never got to its node goes with it", kube(starts), []workerpod.Pod{on("a"), on("b", pending)}, nodesetplan.Plan{Delete: []string{"w-b"}}, 1},
		{"a terminating pod keeps its node", kube(starts), []workerpod.Pod{on("a", terminating)}, nodesetplan.Plan{}, 1},
		{"of two workers on one node the one with jobs stays", kube(starts, starts), []workerpod.Pod{on("a"), on("b"), func() workerpod.Pod { p := double; p.Busy = true; return p }()},
			nodesetplan.Plan{Retire: retire(workerpod.ScaleIn, "w-b")}, 2},
		{"another host name asks for another worker", renamed, []workerpod.Pod{on("a"), on("b")}, nodesetplan.Plan{Retire: retire(workerpod.Replace, "w-a")}, 2},
		{"a host name is waited for until its old bearer is gone", kube(starts, starts), []workerpod.Pod{elsewhere},
			nodesetplan.Plan{Retire: retire(workerpod.Replace, "w-a")}, 2},
		{"workers of the other scaling mode go, and keep their nodes until then", kube(starts, starts),
			[]workerpod.Pod{aPod(0, func(p *workerpod.Pod) { p.Node = "a" }), aPod(1, pending)},
			nodesetplan.Plan{Create: onNodes("b"), Retire: retire(workerpod.Replace, "w-1", "w-0")}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := nodesetplan.Input{Now: noon, Daemon: true, Revision: "new", Rolling: true, MaxUnavailable: 1, Nodes: tt.nodes, Pods: tt.pods}
			check(t, in, tt.want)
			if got := in.Desired(); got != tt.desired {
				t.Errorf("%d workers are desired, want %d", got, tt.desired)
			}
		})
	}
}

func TestARollingUpdateOfADaemonSetCountsNodesWithoutWorkers(t *testing.T) {
	in := nodesetplan.Input{Now: noon, Daemon: true, Revision: "new", Rolling: true, MaxUnavailable: 1}
	in.Nodes = kube(nodesetplan.Starts, nodesetplan.Starts, nodesetplan.Belongs)
	in.Pods = []workerpod.Pod{on("a", old), on("b", old)}
	check(t, in, nodesetplan.Plan{})
	in.MaxUnavailable = 2
	check(t, in, nodesetplan.Plan{Retire: retire(workerpod.Update, "w-a")})
}

func TestLeavingDaemonSetMode(t *testing.T) {
	in := nodesetplan.Input{Now: noon, Replicas: 2, Revision: "new", Rolling: true, MaxUnavailable: 1, Pods: []workerpod.Pod{on("a"), on("b", terminating)}}
	check(t, in, nodesetplan.Plan{Retire: retire(workerpod.Replace, "w-a")})
	in.Pods = []workerpod.Pod{on("a", func(p *workerpod.Pod) { p.Retired = workerpod.Replace })}
	check(t, in, nodesetplan.Plan{Create: places(0)})
}

func TestPodsThatFailAtOnceAreNotMadeAnewAtOnce(t *testing.T) {
	in := nodesetplan.Input{Now: noon, Daemon: true, Revision: "new", Nodes: kube(nodesetplan.Starts), Pods: []workerpod.Pod{on("a", failed, createdBefore(time.Second))}}
	check(t, in, nodesetplan.Plan{Again: noon.Add(4 * time.Second)})
	in.Now = noon.Add(4 * time.Second)
	check(t, in, nodesetplan.Plan{Delete: []string{"w-a"}})
}
