// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// settle lets everything end: jobs, starts, terminations, the troubles of Kubernetes nodes, Slurm's silence. It fails when
// there is no end.
func (w *world) settle() {
	w.mute = false
	for name, n := range w.kube {
		if n.Fit == nodesetplan.Belongs {
			n.Fit = nodesetplan.Starts
			w.kube[name] = n
		}
	}
	for range 40 + 20*len(w.pods) + 20*w.replicas + 20*len(w.kube) {
		before := w.writes
		moved := false
		w.waits = false
		w.now = w.now.Add(2 * time.Minute)
		for _, n := range w.nodes {
			n.jobs, n.completing = 0, false
		}
		for _, p := range w.pods {
			if n := w.node(p); n != nil && p.Ready && !p.Terminating {
				n.responds()
			}
		}
		w.plan(1000)
		for _, name := range slices.Sorted(maps.Keys(w.pods)) {
			w.worker(name)
			p := *w.pods[name]
			w.advance(name)
			moved = moved || w.pods[name] == nil || !cmp.Equal(*w.pods[name], p)
		}
		if w.writes == before && !moved && !w.waits {
			return
		}
	}
	w.t.Fatalf("it does not come to rest: %+v", w.input().Pods)
}

// rested checks that the cluster is what was asked for.
func (w *world) rested() {
	lost := nodesetplan.Make(w.input()).Lost // Slurm has so few nodes that nothing is done about those that it lacks
	for name, p := range w.pods {
		if p.Retired != "" || p.Terminating || !p.Ready {
			w.t.Fatalf("%s is at rest as %+v", name, p)
		}
		updates := w.strategy == rolling || w.strategy == onSchedule && w.maintenance // which is about nodes that Slurm has
		if updates && lost == 0 && p.Revision != w.revision {
			w.t.Fatalf("%s is still of revision %s", name, p.Revision)
		}
		switch n := w.node(p); {
		case n == nil && lost == 0:
			w.t.Fatalf("%s is not registered", name)
		case n != nil && !w.cordoned[name] && !w.hosts[name] && n.drain && n.reason.Ours():
			w.t.Fatalf("%s is drained by us: %q", name, n.reason.Text)
		}
	}
	w.placed()
}

// placed checks that there are as many workers as wanted, where they are wanted.
func (w *world) placed() {
	if !w.daemon && len(w.pods) != w.replicas {
		w.t.Fatalf("%d pods, %d replicas", len(w.pods), w.replicas)
	}
	on := map[string]int{}
	for name, p := range w.pods {
		on[p.Node]++
		if p.Daemon != w.daemon {
			w.t.Fatalf("%s is of the other scaling mode", name)
		}
		if n := w.kube[p.Node]; w.daemon && (n.Fit < nodesetplan.Stays || n.Hostname != p.Hostname || on[p.Node] > 1) {
			w.t.Fatalf("%s is %q on %+v, which has %d", name, p.Hostname, n, on[p.Node])
		}
	}
	for name, n := range w.kube {
		if w.daemon && n.Fit >= nodesetplan.Starts && on[name] == 0 {
			w.t.Fatalf("there is no worker on %s", name)
		}
	}
}

func (w *world) somePod(label string) string {
	if len(w.pods) == 0 {
		return ""
	}
	return rapid.SampledFrom(slices.Sorted(maps.Keys(w.pods))).Draw(w.t, label)
}

// somebody returns, by name, what the world does between two reconciles.
func (w *world) somebody() map[string]func(name string) {
	onNode := func(do func(n *slurmNode)) func(string) {
		return func(name string) {
			if p := w.pods[name]; p != nil && w.node(p) != nil {
				do(w.node(p))
			}
		}
	}
	onPod := func(do func(p *workerpod.Pod)) func(string) {
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
		"a pod loses its readiness":                 onPod(func(p *workerpod.Pod) { p.Ready, p.ReadySince = false, w.now }),
		"a pod fails":                               onPod(func(p *workerpod.Pod) { p.Phase, p.Ready, p.ReadySince = "Failed", false, w.now }),
		"a user cordons a pod, or no more":          onPod(func(p *workerpod.Pod) { w.cordoned[p.Name] = !w.cordoned[p.Name] }),
		"a Kubernetes node is cordoned, or no more": onPod(func(p *workerpod.Pod) { w.hosts[p.Name] = !w.hosts[p.Name] }),
		"somebody deletes a pod":                    onPod(func(p *workerpod.Pod) { p.Terminating = true }),
		"all pods lose readiness":                   func(string) { w.eachPod(func(p *workerpod.Pod) { p.Ready, p.ReadySince = false, w.now }) },
		"the set is scaled":                         func(string) { w.replicas = rapid.IntRange(0, 6).Draw(w.t, "replicas") },
		"the template changes":                      func(string) { w.revision = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(w.t, "revision") },
		"the strategy changes": func(string) {
			w.strategy = rapid.SampledFrom([]strategy{onDelete, rolling, onSchedule}).Draw(w.t, "strategy")
		},
		"the maintenance begins or ends":           func(string) { w.maintenance = !w.maintenance },
		"the scaling mode changes":                 func(string) { w.daemon = !w.daemon },
		"a Kubernetes node comes, goes or changes": func(string) { w.changeKubeNode() },
		"somebody deletes the record of a node": onPod(func(p *workerpod.Pod) {
			if n := w.node(p); n != nil && n.state().Busy() == node.No { // Slurm refuses it of others
				delete(w.nodes, p.Hostname)
			}
		}),
		"Slurm falls silent or back": func(string) { w.mute = !w.mute },
		"time passes": func(string) {
			w.now = w.now.Add(time.Duration(rapid.IntRange(1, 300).Draw(w.t, "seconds")) * time.Second)
		},
	}
}

func (w *world) changeKubeNode() {
	name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(w.t, "node")
	if rapid.IntRange(0, 5).Draw(w.t, "gone") == 5 {
		delete(w.kube, name)
		return
	}
	hostnames := []string{name, name, name, "gpu-" + name, "any"}
	for other, n := range w.kube {
		if other != name && n.Hostname == "any" {
			hostnames[4] = name // of two with one host name only one counts
		}
	}
	fits := []nodesetplan.Fit{nodesetplan.Starts, nodesetplan.Starts, nodesetplan.Belongs, nodesetplan.Fits, nodesetplan.Stays, nodesetplan.Unfit}
	w.kube[name] = nodesetplan.KubeNode{
		Name: name, Hostname: rapid.SampledFrom(hostnames).Draw(w.t, "host name"), Fit: rapid.SampledFrom(fits).Draw(w.t, "fit"),
	}
}

func (w *world) eachPod(do func(p *workerpod.Pod)) {
	for _, p := range w.pods {
		if !p.Terminating && p.Phase == "Running" {
			do(p)
		}
	}
}

// happen lets something happen, by name.
func (w *world) happen(what string, somebody map[string]func(string)) {
	w.steps++
	switch what {
	case "plan":
		w.plan(1000)
	case "plan and die":
		w.plan(rapid.IntRange(0, 3).Draw(w.t, "steps"))
		clear(w.absent)
	case "workers":
		for _, name := range slices.Sorted(maps.Keys(w.pods)) {
			w.worker(name)
		}
	default:
		somebody[what](w.somePod("pod"))
	}
}

// enough fails a test whose worlds are too small: CI has to run 100,000 steps.
func enough(t *testing.T, worlds, steps int) {
	t.Helper()
	const wanted, checks = 100_000, 1500 // see "unit" in the Makefile
	t.Logf("%d steps in %d worlds", steps, worlds)
	if worlds >= checks && steps < wanted {
		t.Errorf("%d steps in %d worlds, want %d", steps, worlds, wanted)
	}
}

func TestPlansKeepTheInvariantsWhateverHappens(t *testing.T) {
	worlds, steps := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 6)
		w.drainTimeout = time.Duration(rapid.SampledFrom([]int{0, 0, 5}).Draw(t, "drainTimeout")) * time.Minute
		somebody := w.somebody()
		events := append(slices.Sorted(maps.Keys(somebody)), "a job starts", "plan", "plan", "plan and die", "workers", "workers")
		// What comes first in a list is drawn more often, so that each world has its own preferences.
		events = rapid.Permutation(events).Draw(t, "order")
		for range rapid.IntRange(0, 400).Draw(t, "events") {
			w.happen(rapid.SampledFrom(events).Draw(t, "event"), somebody)
		}
		worlds, steps = worlds+1, steps+w.steps
		admins := map[string]string{}
		w.settle()
		w.rested()
		for name, n := range w.nodes {
			if n.drain && !n.reason.Ours() {
				admins[name] = n.reason.Text
			}
		}
		// At rest nothing is written, and what administrators set stays.
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
	enough(t, worlds, steps)
}

func TestARollingUpdateNeverTakesMoreThanItMay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 8)
		w.revision = "b"
		desired := w.input().Desired()
		for range 400 {
			w.plan(1000)
			if name := w.somePod("worker"); name != "" {
				w.worker(name)
				if rapid.Bool().Draw(t, "advance") {
					w.advance(name)
				}
			}
			w.now = w.now.Add(5 * time.Second)
			if missing := desired - w.serving(); missing > w.maxUnavailable {
				t.Fatalf("%d of %d workers are unavailable, %d may be: %s", missing, desired, w.maxUnavailable, describe(w))
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
