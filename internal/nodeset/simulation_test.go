// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coxswain-hpc/coxswain/internal/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// world is a NodeSet with its pods and a Slurm with their nodes, as far as plans are concerned. Its methods are what
// happens by itself, what people do, and the two reconcilers; the reconcilers check the invariants of
// design/reliability.md at each of their writes.
type world struct {
	t              *rapid.T
	now            time.Time
	replicas       int
	revision       string
	rolling        bool
	maxUnavailable int
	drainTimeout   time.Duration
	pods           map[string]*nodeset.Pod
	nodes          map[string]*slurmNode
	cordoned       map[string]bool // by a user, by pod
	hosts          map[string]bool // cordoned Kubernetes nodes, by pod
	marked         map[string]bool // pods that say so
	mute           bool            // Slurm does not answer
	writes         int
}

// slurmNode is what slurmctld has on a node. It outlives its pod.
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

// foreign says that somebody else has said something about the node.
func (n *slurmNode) foreign() bool {
	return (n.drain || n.down) && !n.reason.Ours()
}

func (w *world) input() nodeset.Input {
	in := nodeset.Input{
		Now: w.now, Replicas: w.replicas, Revision: w.revision, Rolling: w.rolling, MaxUnavailable: w.maxUnavailable, MinReady: 10 * time.Second,
	}
	for _, name := range slices.Sorted(maps.Keys(w.pods)) {
		in.Pods = append(in.Pods, w.pod(name))
	}
	return in
}

// pod is a pod as the reconcilers see it.
func (w *world) pod(name string) nodeset.Pod {
	p := *w.pods[name]
	p.Cordoned = p.Retired != "" || w.cordoned[name] || w.marked[name]
	if n := w.nodes[name]; n != nil {
		p.Busy = n.state().Busy() == node.Yes
	}
	return p
}

// available says whether a worker takes part, retired or not.
func (w *world) available(p *nodeset.Pod) bool {
	return p.Ready && !p.Terminating && !w.now.Before(p.ReadySince.Add(10*time.Second))
}

// serving counts the workers that take part, but for those that were retired.
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
	plan := nodeset.Make(w.input())
	step := func() bool { steps--; return steps >= 0 }
	for _, place := range plan.Create {
		if step() {
			w.create(place.Ordinal)
		}
	}
	for _, name := range plan.Delete {
		if p := w.pods[name]; p.Phase != "Failed" && p.Phase != "Succeeded" {
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
		if r.Cause == nodeset.Update && available && w.replicas-w.serving() > w.maxUnavailable {
			w.t.Fatalf("%s is retired, and then only %d of %d workers serve", r.Pod, w.serving(), w.replicas)
		}
	}
	for _, name := range plan.Reprieve {
		if step() {
			w.pods[name].Retired = ""
			w.writes++
		}
	}
	updating := 0
	for _, p := range w.pods {
		if w.available(p) && p.Retired == nodeset.Update {
			updating++
		}
	}
	if steps >= 0 && updating > w.maxUnavailable {
		w.t.Fatalf("%d workers that could take part are retired for an update, %d may be", updating, w.maxUnavailable)
	}
}

func (w *world) create(ordinal int) {
	name := fmt.Sprintf("w-%d", ordinal)
	if w.pods[name] != nil {
		w.t.Fatalf("%s is made twice", name)
	}
	if len(w.pods) >= w.replicas {
		w.t.Fatalf("%s is made although there are %d pods for %d replicas", name, len(w.pods), w.replicas)
	}
	w.pods[name] = &nodeset.Pod{Name: name, Ordinal: ordinal, Revision: w.revision, Phase: "Pending", ReadySince: w.now, Created: w.now}
	w.writes++
}

func (w *world) remove(name string) {
	w.pods[name].Terminating = true
	w.writes++
}

// worker is one reconcile of a worker.
func (w *world) worker(name string) {
	p, n := w.pods[name], w.nodes[name]
	in := nodeset.Worker{Now: w.now, Asked: w.now, Pod: w.pod(name), Host: nodeset.Host{Name: "node-1", Cordoned: node.AnswerOf(w.hosts[name])}, NodeMarked: w.marked[name], DrainTimeout: w.drainTimeout, Protection: nodeset.UntilDrained, Known: node.No}
	switch {
	case w.mute:
		in.Known, in.Why = node.Unknown, "silence"
	case n != nil:
		in.Known, in.State, in.Reason = node.Yes, n.state(), n.reason
	}
	action := nodeset.Next(in)
	if w.mute && (action.Delete && p.Scheduled || action.Undrain || action.Drain != "" || action.Protected != node.Unknown || action.ConditionsKnown) {
		w.t.Fatalf("%s: %+v although Slurm does not answer", name, action)
	}
	if action.Drain != "" || action.Undrain {
		if n.foreign() {
			w.t.Fatalf("%s: %+v although %q stands there", name, action, n.reason.Text)
		}
		w.writes++
	}
	switch {
	case action.Drain != "":
		n.drain, n.reason = true, node.Reason{Text: action.Drain, SetBy: "slurm", At: w.now}
	case action.Undrain:
		n.drain = false
		if !n.down {
			n.reason = node.Reason{}
		}
	}
	if marked := action.NodeMark == node.Yes; action.NodeMark != node.Unknown && marked != w.marked[name] {
		w.marked[name] = marked
		w.writes++
	}
	if action.Delete {
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

// advance lets happen to one pod what comes next by itself.
func (w *world) advance(name string) {
	p := w.pods[name]
	n := w.nodes[name]
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
	case p.Phase == "Pending":
		p.Phase, p.Scheduled = "Running", true
	case p.Phase == "Running" && !p.Ready:
		p.Ready, p.ReadySince = true, w.now
		if n == nil {
			n = &slurmNode{}
			w.nodes[name] = n
		}
		n.responds()
	}
}

// responds lets slurmctld hear of the node's slurmd again.
func (n *slurmNode) responds() {
	n.down = false
	if !n.drain {
		n.reason = node.Reason{}
	}
}

// settle lets everything end: jobs, starts, terminations, Slurm's silence. It fails when there is no end.
func (w *world) settle() {
	w.mute = false
	for range 40 + 20*len(w.pods) + 20*w.replicas {
		before := w.writes
		moved := false
		w.now = w.now.Add(2 * time.Minute)
		for name, n := range w.nodes {
			n.jobs, n.completing = 0, false
			if p := w.pods[name]; p != nil && p.Ready && !p.Terminating {
				n.responds()
			}
		}
		w.plan(1000)
		for _, name := range slices.Sorted(maps.Keys(w.pods)) {
			w.worker(name)
			p := *w.pods[name]
			w.advance(name)
			moved = moved || w.pods[name] == nil || *w.pods[name] != p
		}
		if w.writes == before && !moved {
			return
		}
	}
	w.t.Fatalf("it does not come to rest: %+v", w.input().Pods)
}

// rested checks that the cluster is what was asked for.
func (w *world) rested() {
	ordinals := map[int]bool{}
	for name, p := range w.pods {
		ordinals[p.Ordinal] = true
		if p.Retired != "" || p.Terminating || !p.Ready {
			w.t.Fatalf("%s is at rest as %+v", name, p)
		}
		if w.rolling && p.Revision != w.revision {
			w.t.Fatalf("%s is still of revision %s", name, p.Revision)
		}
		if n := w.nodes[name]; !w.cordoned[name] && !w.hosts[name] && n.drain && n.reason.Ours() {
			w.t.Fatalf("%s is drained by us: %q", name, n.reason.Text)
		}
	}
	if len(w.pods) != w.replicas || len(ordinals) != w.replicas {
		w.t.Fatalf("%d pods, %d ordinals, %d replicas", len(w.pods), len(ordinals), w.replicas)
	}
}

func (w *world) somePod(label string) string {
	if len(w.pods) == 0 {
		return ""
	}
	return rapid.SampledFrom(slices.Sorted(maps.Keys(w.pods))).Draw(w.t, label)
}

// somebody is what the world does between two reconciles.
func (w *world) somebody() map[string]func(name string) {
	onNode := func(do func(n *slurmNode)) func(string) {
		return func(name string) {
			if n := w.nodes[name]; n != nil {
				do(n)
			}
		}
	}
	onPod := func(do func(p *nodeset.Pod)) func(string) {
		return func(name string) {
			if p := w.pods[name]; p != nil && !p.Terminating {
				do(p)
			}
		}
	}
	return map[string]func(string){
		"pods advance": func(name string) {
			if w.pods[name] != nil {
				w.advance(name)
			}
		},
		"a job starts": onNode(func(n *slurmNode) {
			if !n.drain && !n.down {
				n.jobs++
			}
		}),
		"a job ends": onNode(func(n *slurmNode) {
			if n.jobs > 0 {
				n.jobs--
				n.completing = true
			}
		}),
		"jobs are cleaned up": onNode(func(n *slurmNode) { n.completing = false }),
		"an administrator drains a node": onNode(func(n *slurmNode) {
			n.drain, n.reason = true, node.Reason{Text: rapid.SampledFrom([]string{"bad disk", ""}).Draw(w.t, "reason"), SetBy: "root", At: w.now}
		}),
		"an administrator undrains a node": onNode(func(n *slurmNode) { n.drain, n.reason = false, node.Reason{} }),
		"a node does not respond": onNode(func(n *slurmNode) {
			n.down, n.jobs, n.completing = true, 0, false
			if n.reason.Text == "" && !n.drain {
				n.reason = node.Reason{Text: "Not responding", SetBy: "slurm", At: w.now}
			}
		}),
		"a pod loses its readiness":                 onPod(func(p *nodeset.Pod) { p.Ready, p.ReadySince = false, w.now }),
		"a pod fails":                               onPod(func(p *nodeset.Pod) { p.Phase, p.Ready, p.ReadySince = "Failed", false, w.now }),
		"a user cordons a pod, or no more":          onPod(func(p *nodeset.Pod) { w.cordoned[p.Name] = !w.cordoned[p.Name] }),
		"a Kubernetes node is cordoned, or no more": onPod(func(p *nodeset.Pod) { w.hosts[p.Name] = !w.hosts[p.Name] }),
		"somebody deletes a pod":                    onPod(func(p *nodeset.Pod) { p.Terminating = true }),
		"all pods lose readiness":                   func(string) { w.eachPod(func(p *nodeset.Pod) { p.Ready, p.ReadySince = false, w.now }) },
		"the set is scaled":                         func(string) { w.replicas = rapid.IntRange(0, 6).Draw(w.t, "replicas") },
		"the template changes":                      func(string) { w.revision = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(w.t, "revision") },
		"the strategy changes":                      func(string) { w.rolling = !w.rolling },
		"Slurm falls silent or back":                func(string) { w.mute = !w.mute },
		"time passes": func(string) {
			w.now = w.now.Add(time.Duration(rapid.IntRange(1, 300).Draw(w.t, "seconds")) * time.Second)
		},
	}
}

func (w *world) eachPod(do func(p *nodeset.Pod)) {
	for _, p := range w.pods {
		if !p.Terminating && p.Phase == "Running" {
			do(p)
		}
	}
}

func TestPlansKeepTheInvariantsWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{
			t: t, now: noon, replicas: rapid.IntRange(0, 6).Draw(t, "replicas"), revision: "a", rolling: true,
			maxUnavailable: rapid.IntRange(1, 3).Draw(t, "maxUnavailable"),
			drainTimeout:   time.Duration(rapid.SampledFrom([]int{0, 0, 5}).Draw(t, "drainTimeout")) * time.Minute,
			pods:           map[string]*nodeset.Pod{}, nodes: map[string]*slurmNode{}, cordoned: map[string]bool{}, hosts: map[string]bool{}, marked: map[string]bool{},
		}
		w.settle()
		somebody := w.somebody()
		events := slices.Sorted(maps.Keys(somebody))
		for range rapid.IntRange(0, 150).Draw(t, "events") {
			switch what := rapid.SampledFrom(append(events, "a job starts", "plan", "plan", "plan and die", "workers", "workers")).Draw(t, "event"); what {
			case "plan":
				w.plan(1000)
			case "plan and die":
				w.plan(rapid.IntRange(0, 3).Draw(t, "steps"))
			case "workers":
				for _, name := range slices.Sorted(maps.Keys(w.pods)) {
					w.worker(name)
				}
			default:
				somebody[what](w.somePod("pod"))
			}
		}
		admins := map[string]string{}
		w.settle()
		w.rested()
		for name, n := range w.nodes {
			if n.drain && !n.reason.Ours() {
				admins[name] = n.reason.Text
			}
		}
		// At rest nothing is written, and what administrators said stays.
		before := w.writes
		w.settle()
		w.rested()
		if w.writes != before {
			t.Fatalf("%d writes at rest", w.writes-before)
		}
		for name, reason := range admins {
			if n := w.nodes[name]; !n.drain || n.reason.Text != reason {
				t.Fatalf("the drain of %s (%q) is gone: %+v", name, reason, n)
			}
		}
	})
}

func TestARollingUpdateNeverTakesMoreThanItMay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{
			t: t, now: noon, replicas: rapid.IntRange(1, 8).Draw(t, "replicas"), revision: "a", rolling: true,
			maxUnavailable: rapid.IntRange(1, 3).Draw(t, "maxUnavailable"), pods: map[string]*nodeset.Pod{}, nodes: map[string]*slurmNode{}, cordoned: map[string]bool{}, hosts: map[string]bool{}, marked: map[string]bool{},
		}
		w.settle()
		w.revision = "b"
		for range 400 {
			w.plan(1000)
			if name := w.somePod("worker"); name != "" {
				w.worker(name)
				if rapid.Bool().Draw(t, "advance") {
					w.advance(name)
				}
			}
			w.now = w.now.Add(5 * time.Second)
			if missing := w.replicas - w.serving(); missing > w.maxUnavailable {
				t.Fatalf("%d of %d workers are unavailable, %d may be: %s", missing, w.replicas, w.maxUnavailable, describe(w))
			}
		}
		w.settle()
		w.rested()
	})
}

func describe(w *world) string {
	var lines []string
	for _, p := range w.input().Pods {
		lines = append(lines, fmt.Sprintf("%+v", p))
	}
	return strings.Join(lines, "\n")
}
