// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// world is a NodeSet with its pods and a Slurm with their nodes, as far as plans are concerned. Its methods are what
// happens by itself, what people do, and the two reconcilers; the reconcilers check the invariants of
// design/reliability.md at each of their writes.
type world struct {
	t              *rapid.T
	now            time.Time
	replicas       int
	daemon         bool // one worker on each of kube, instead of replicas
	kube           map[string]nodesetplan.KubeNode
	revision       string
	strategy       strategy
	maintenance    bool // it is the time of the ScheduledUpdate
	maxUnavailable int
	drainTimeout   time.Duration
	pods           map[string]*workerpod.Pod
	nodes          map[string]*slurmNode
	cordoned       map[string]bool      // by a user, by pod
	hosts          map[string]bool      // cordoned Kubernetes nodes, by pod
	marked         map[string]bool      // pods with our mark
	absent         map[string]time.Time // since when Slurm does not have the nodes of pods, as the operator remembers
	mute           bool                 // Slurm does not answer
	writes         int
	steps          int  // what happened, by itself or because somebody did it, and what was reconciled
	waits          bool // a decision may change by the mere passing of time
}

// strategy is how workers are updated.
type strategy int

const (
	onDelete strategy = iota
	rolling
	onSchedule
)

// newWorld draws a NodeSet, and lets it come to rest.
func newWorld(t *rapid.T, most int) *world {
	w := &world{
		t: t, now: noon, replicas: rapid.IntRange(0, most).Draw(t, "replicas"), daemon: rapid.Bool().Draw(t, "daemon"),
		revision: "a", strategy: rolling, maxUnavailable: rapid.IntRange(1, 3).Draw(t, "maxUnavailable"),
		kube: map[string]nodesetplan.KubeNode{}, pods: map[string]*workerpod.Pod{}, nodes: map[string]*slurmNode{}, cordoned: map[string]bool{},
		hosts: map[string]bool{}, marked: map[string]bool{}, absent: map[string]time.Time{},
	}
	for _, n := range kube(slices.Repeat([]nodesetplan.Fit{nodesetplan.Starts}, w.replicas)...) {
		w.kube[n.Name] = n
	}
	w.settle()
	return w
}

// slurmNode is slurmctld's record of a node. It outlives its pod.
type slurmNode struct {
	drain, down, completing bool
	jobs                    int
	reason                  node.Reason
}

func (n *slurmNode) state() node.State {
	var words []string
	switch {
	case n.down:
		words = append(words, "DOWN")
	case n.jobs > 0:
		words = append(words, "MIXED")
	default:
		words = append(words, "IDLE")
	}
	if n.drain {
		words = append(words, "DRAIN")
	}
	if n.completing {
		words = append(words, "COMPLETING")
	}
	return node.Parse(words)
}

// foreign reports whether somebody else has drained the node or set it DOWN.
func (n *slurmNode) foreign() bool {
	return (n.drain || n.down) && !n.reason.Ours()
}

func (w *world) input() nodesetplan.Input {
	in := nodesetplan.Input{
		Now: w.now, Replicas: w.replicas, Daemon: w.daemon, Revision: w.revision, Rolling: w.strategy == rolling, Scheduled: w.strategy == onSchedule,
		MaxUnavailable: w.maxUnavailable, MinReady: 10 * time.Second,
	}
	if !w.mute {
		in.SnapshotTime, in.NodeListTime = w.now, w.now
	}
	for _, name := range slices.Sorted(maps.Keys(w.kube)) {
		in.Nodes = append(in.Nodes, w.kube[name])
	}
	for _, name := range slices.Sorted(maps.Keys(w.pods)) {
		in.Pods = append(in.Pods, w.pod(name))
	}
	return in
}

// node returns Slurm's record of a worker's node, or nil.
func (w *world) node(p *workerpod.Pod) *slurmNode { return w.nodes[p.Hostname] }

// pod returns a pod as the reconcilers see it.
func (w *world) pod(name string) workerpod.Pod {
	p := *w.pods[name]
	p.Cordoned = p.Retired != "" || w.cordoned[name] || w.marked[name]
	n := w.node(&p)
	if n != nil {
		p.Busy = n.state().Busy() == node.Yes
	}
	if !w.mute {
		p.Registered, p.Maintained = node.AnswerOf(n != nil), node.AnswerOf(n != nil && w.maintenance)
	}
	if p.Registered != node.No {
		delete(w.absent, name)
	} else if w.absent[name].IsZero() {
		w.absent[name] = w.now
	}
	p.Absent = w.absent[name]
	return p
}

// available reports whether a worker takes part, retired or not.
func (w *world) available(p *workerpod.Pod) bool {
	return p.Ready && !p.Terminating && !w.now.Before(p.ReadySince.Add(10*time.Second))
}

// serving counts the workers that take part, without those that were retired.
func (w *world) serving() int {
	serving := 0
	for _, p := range w.pods {
		if w.available(p) && p.Retired == "" {
			serving++
		}
	}
	return serving
}

// plan is one reconcile of the NodeSet. steps bounds how much of the plan is carried out before the process dies.
func (w *world) plan(steps int) {
	in := w.input()
	plan := nodesetplan.Make(in)
	w.waits = w.waits || !plan.Again.IsZero()
	step := func() bool { steps--; return steps >= 0 }
	for _, place := range plan.Create {
		if step() {
			w.create(place)
		}
	}
	for _, name := range plan.Delete {
		if p := w.pods[name]; p.Phase != "Failed" && p.Phase != "Succeeded" && (p.Phase != "Pending" || p.Scheduled) {
			w.t.Fatalf("%s is deleted by the plan and is %s", name, p.Phase)
		}
		if step() {
			w.remove(name)
		}
	}
	for _, r := range plan.Retire {
		if !step() {
			continue
		}
		p := w.pods[r.Pod]
		available := w.available(p) && p.Retired == ""
		p.Retired = r.Cause
		w.writes++
		w.mayUpdate(r, plan.Desired, available)
		w.mayScaleIn(r)
	}
	for _, name := range plan.Unretire {
		if p := w.pods[name]; w.mute && w.strategy == onSchedule && p.Retired == workerpod.Update && p.Revision != w.revision {
			w.t.Fatalf("%s is wanted after all, and nobody says whether its maintenance is over", name)
		}
		if step() {
			w.pods[name].Retired = ""
			w.writes++
		}
	}
	updating := 0
	for _, p := range w.pods {
		if w.available(p) && p.Retired == workerpod.Update {
			updating++
		}
	}
	if steps >= 0 && updating > w.maxUnavailable && w.strategy != onSchedule {
		w.t.Fatalf("%d workers that could take part are retired for an update, %d may be", updating, w.maxUnavailable)
	}
}

// mayUpdate checks a retirement that has been carried out.
func (w *world) mayUpdate(r nodesetplan.Retirement, desired int, available bool) {
	switch {
	case r.Cause != workerpod.Update:
	case w.strategy == onSchedule:
		if !w.maintenance || w.mute {
			w.t.Fatalf("%s is retired for an update, and nobody says that it is in maintenance", r.Pod)
		}
	case w.strategy == onDelete:
		w.t.Fatalf("%s is retired for an update that nobody wants", r.Pod)
	case available && desired-w.serving() > w.maxUnavailable:
		w.t.Fatalf("%s is retired, and then only %d of %d workers serve", r.Pod, w.serving(), desired)
	}
}

// mayScaleIn checks a retirement in scaling mode DaemonSet: the one worker on a node that keeps it stays.
func (w *world) mayScaleIn(r nodesetplan.Retirement) {
	p := w.pods[r.Pod]
	if r.Cause != workerpod.ScaleIn || !w.daemon || w.kube[p.Node].Fit < nodesetplan.Stays {
		return
	}
	for name, other := range w.pods {
		if name != p.Name && other.Node == p.Node && other.Retired == "" && !other.Terminating {
			return
		}
	}
	w.t.Fatalf("%s is retired, which is the only one on %+v", r.Pod, w.kube[p.Node])
}

func (w *world) create(place workerpod.Place) {
	p := &workerpod.Pod{Name: fmt.Sprintf("w-%d", place.Ordinal), Ordinal: place.Ordinal, Revision: w.revision, Phase: "Pending", ReadySince: w.now, Created: w.now}
	p.Hostname = p.Name
	if w.daemon {
		p.Name, p.Hostname, p.Ordinal, p.Daemon, p.Node = "w-"+place.Node, place.Hostname, -1, true, place.Node
	} else if len(w.pods) >= w.replicas {
		w.t.Fatalf("%s is made although there are %d pods for %d replicas", p.Name, len(w.pods), w.replicas)
	}
	for name, other := range w.pods {
		if name == p.Name || other.Hostname == p.Hostname || w.daemon && other.Node == p.Node {
			w.t.Fatalf("%s is made beside %s: %+v", p.Name, name, other)
		}
	}
	if n, ok := w.kube[place.Node]; w.daemon && (!ok || n.Fit < nodesetplan.Starts) {
		w.t.Fatalf("%s is made on %+v", p.Name, n)
	}
	w.pods[p.Name] = p
	w.writes++
}

func (w *world) remove(name string) {
	w.pods[name].Terminating = true
	w.writes++
}

// worker is one reconcile of a worker.
func (w *world) worker(name string) {
	p := w.pods[name]
	n := w.node(p)
	in := workerplan.Worker{Now: w.now, SlurmView: workerplan.SlurmView{SnapshotTime: w.now, NodeListTime: w.now, Registered: node.No, JobsKnown: node.Yes, SlurmStateLost: node.No}, Pod: w.pod(name), Host: workerplan.Host{Name: "node-1", Cordoned: node.AnswerOf(w.hosts[name])}, NodeMarked: w.marked[name], Wanted: workerplan.Wanted{DrainTimeout: w.drainTimeout, Protection: workerpod.UntilDrained}}
	switch {
	case w.mute:
		in.Registered, in.Why = node.Unknown, "silence"
	case n != nil:
		in.Registered, in.State, in.Reason = node.Yes, n.state(), n.reason
	}
	in.Absent = in.Pod.Absent
	action := workerplan.Next(in)
	w.waits = w.waits || !action.Again.IsZero()
	if w.mute && (action.Deletion.Delete && p.Scheduled || action.StateChange.Undrain || action.StateChange.Drain != "" || action.Marks.Protected != node.Unknown || action.Shown.ConditionsKnown) {
		w.t.Fatalf("%s: %+v although Slurm does not answer", name, action)
	}
	if action.StateChange.Drain != "" || action.StateChange.Undrain {
		if n.foreign() && (n.drain || !strings.Contains(action.StateChange.Drain, n.reason.Text)) { // what is DOWN may be drained besides
			w.t.Fatalf("%s: %+v although %q stands there", name, action, n.reason.Text)
		}
		w.writes++
	}
	switch {
	case action.StateChange.Drain != "":
		n.drain, n.reason = true, node.Reason{Text: action.StateChange.Drain, SetBy: "slurm", At: w.now}
	case action.StateChange.Undrain:
		n.drain = false
		if !n.down {
			n.reason = node.Reason{}
		}
	}
	if marked := action.Marks.NodeMark == node.Yes; action.Marks.NodeMark != node.Unknown && marked != w.marked[name] {
		w.marked[name] = marked
		w.writes++
	}
	if action.Deletion.Delete {
		if p.Retired == "" {
			w.t.Fatalf("%s is deleted without having been retired", name)
		}
		overtime := w.drainTimeout > 0 && n != nil && n.reason.Ours() && w.now.Sub(n.reason.At) >= w.drainTimeout
		if n != nil && n.state().Busy() != node.No && !overtime {
			w.t.Fatalf("%s is deleted while it is %v", name, n.state())
		}
		w.remove(name)
	}
}

// advance does to one pod what comes next by itself.
func (w *world) advance(name string) {
	p := w.pods[name]
	n := w.node(p)
	switch {
	case p.Terminating:
		if n != nil {
			// What preStop does, and what slurmctld notices otherwise.
			n.jobs, n.completing = 0, false
			if !n.foreign() {
				n.down, n.reason = true, node.Reason{Text: "slurm-operator: Pod is terminating", SetBy: "root", At: w.now}
			} else {
				n.down = true
			}
		}
		delete(w.pods, name)
		delete(w.cordoned, name)
		delete(w.hosts, name)
		delete(w.marked, name)
		delete(w.absent, name)
	case p.Phase == "Pending":
		w.schedule(p)
	case p.Phase == "Running" && !p.Ready:
		p.Ready, p.ReadySince = true, w.now
		if n == nil {
			n = &slurmNode{}
			w.nodes[p.Hostname] = n
		}
		n.responds()
	}
}

// schedule starts a pod on the node that it is bound to, as long as that fits it, or on any.
func (w *world) schedule(p *workerpod.Pod) {
	switch all := slices.Sorted(maps.Keys(w.kube)); {
	case p.Daemon && w.kube[p.Node].Fit < nodesetplan.Stays:
		return
	case !p.Daemon && len(all) > 0:
		p.Node = all[p.Ordinal%len(all)]
	}
	p.Phase, p.Scheduled = "Running", true
}

// responds makes slurmctld hear of the node's slurmd again.
func (n *slurmNode) responds() {
	n.down = false
	if !n.drain {
		n.reason = node.Reason{}
	}
}
