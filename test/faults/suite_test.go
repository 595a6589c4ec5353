// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults shows by enumeration that whatever goes wrong, the same end is reached, nothing more is destroyed on the
// way than without the fault, and then nothing is written any more (reliability.md).
//
// The operator is the real one, its manager and all: it runs in a synctest bubble with a Kubernetes API server in memory
// (internal/testing/kubesim) and a slurmctld in memory (internal/testing/fake). Time is synthetic, so that minutes of
// waiting cost nothing. A scenario runs twice without a fault; what differs between the two is chance and is masked, the
// rest is the reference. Then it runs once for each of its writes and each fault.
package faults

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/kubesim"
)

var (
	trace   = flag.Bool("faults.trace", false, "show the writes of every reference run")
	verbose = flag.Bool("faults.log", false, "show the operator's log")
	every   = flag.Int("faults.every", 6, "try each fault at every so many writes; not all faults at the same ones")
	share   = flag.Int("faults.share", 6, "try each fault in every so many scenarios; not all faults in the same ones")
	part    = flag.Int("faults.part", 0, "of as many parts as -faults.share says, which together try all faults in all scenarios, try this one; the first is 0")
)

func TestMain(m *testing.M) {
	flag.Parse()
	log := logr.Discard()
	if *verbose {
		log = funcr.New(func(prefix, args string) { fmt.Fprintln(os.Stderr, prefix, args) }, funcr.Options{})
	}
	ctrl.SetLogger(log)
	// Each world is small and makes much that is of no use a moment later.
	debug.SetGCPercent(1600)
	debug.SetMemoryLimit(2 << 30)
	// They remember across bubbles, in each of which time begins anew, when the last error was.
	utilruntime.ErrorHandlers = nil
	utilruntime.PanicHandlers = nil
	m.Run()
}

// beginning is where a scenario starts from.
type beginning struct {
	dump kubesim.Dump
	// comments are the comments of Slurm's nodes.
	comments map[string]string
	at       time.Duration
}

// begin makes the beginning of scenarios: a cluster at rest.
func begin(t *testing.T, spec string) beginning {
	t.Helper()
	if spec == "" {
		return beginning{}
	}
	var out beginning
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clocks{})
		defer w.close()
		w.boot()
		w.cluster(spec)
		w.settle()
		out = w.beginning()
		for _, v := range w.violations {
			t.Error(v)
		}
	})
	return out
}

// beginning returns the world as it is now, to begin from.
func (w *world) beginning() beginning {
	out := beginning{dump: w.sim.Dump(), at: time.Since(w.start), comments: map[string]string{}}
	for _, name := range w.slurm.Names() {
		status, _ := w.slurm.Node(name)
		out.comments[name] = status.Comment
	}
	return out
}

// run plays a scenario once, with a fault at the k-th write, or none.
func run(t *testing.T, s scenario, from beginning, f fault, k int) outcome {
	t.Helper()
	var out outcome
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(from.at) // what is stored was stored in the past
		w := newWorld(t, f.clocks)
		defer w.close()
		w.restore(from)
		if s.writes != nil {
			w.mount(*s.writes)
		}
		w.limit = s.limit
		if s.storage {
			w.storage = &storage{used: map[string]int64{}}
		}
		if s.reboots {
			w.addRebooters()
		}
		if s.replaces {
			w.addCloud()
		}
		w.boot()
		w.sleep(15 * time.Second)
		w.expectRest("after the start of an operator")
		began := time.Now()
		w.mu.Lock()
		w.start, w.calls, w.writes = began, nil, 0
		w.untouched = f.strike == nil
		w.inject = f.at(w, k)
		w.mu.Unlock()
		s.act(w)
		w.settle()
		if f.strike == nil {
			w.expectGoal()
		}
		if s.leaves != nil {
			s.leaves(w)
		}
		w.mu.Lock()
		out.took = w.changed.Sub(began)
		out.calls = slices.SortedFunc(slices.Values(w.calls), func(a, b call) int { return a.ordinal - b.ordinal })
		w.mu.Unlock()
		out.state, out.counts = w.state(), count(out.calls)
		if f.strike == nil || f.otherEnd || s.anyEnd { // from the same end it goes the same way
			w.reconcileAgain(20)
			w.restartAtTheEnd()
		} else {
			w.reconcileAgain(2)
		}
		out.violations = w.violations
	})
	return out
}

// restore puts the beginning into a new world.
func (w *world) restore(from beginning) {
	w.sim.Restore(from.dump)
	w.configuration()
	for _, pod := range w.sim.Objects(podKind) {
		if phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase"); isWorker(pod) && phase == "Running" {
			w.register(pod)
		}
	}
	for name, comment := range from.comments {
		if _, known := w.slurm.Node(name); !known { // it was made powered down
			w.tellSlurm("new/node/", map[string]string{"node_conf": "NodeName=" + name + " CPUs=4 RealMemory=512000 State=CLOUD"})
		}
		w.tellSlurm("node/"+name, map[string]string{"comment": comment})
	}
}

// tellSlurm makes a call of Slurm's administrator.
func (w *world) tellSlurm(path string, message map[string]string) {
	body, err := json.Marshal(message)
	if err != nil {
		w.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(w.ctx, http.MethodPost, "http://slurm/slurm/v0.0.45/"+path, bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("X-Slurm-User-Token", "of nobody in particular")
	response, err := w.slurm.Transport().RoundTrip(request)
	if err != nil {
		w.t.Fatalf("telling Slurm %s %s: %v", path, body, err)
	}
	defer response.Body.Close() //nolint:errcheck // nothing follows from it
	if response.StatusCode != http.StatusOK {
		w.t.Fatalf("telling Slurm %s %s: %s", path, body, response.Status)
	}
}

// at lets a fault happen at the k-th write.
func (f fault) at(w *world, k int) func(call) verdict {
	return func(c call) verdict {
		if f.strike == nil || c.ordinal != k || f.only != "" && f.only != c.to {
			return verdict{}
		}
		v := f.strike(w, c)
		v.name = f.name
		return v
	}
}

// expectGoal checks that what the user asked for is there: the components are ready, and there are as many workers as wanted,
// all of them good.
func (w *world) expectGoal() {
	for _, gvk := range []schema.GroupVersionKind{
		slinkyv1beta1.GroupVersion.WithKind("Controller"), slinkyv1beta1.GroupVersion.WithKind("RestApi"),
	} {
		for _, obj := range w.sim.Objects(gvk) {
			if !says(obj, slinkyv1beta1.ConditionReady) {
				w.fail("the goal is reached", "%s %s: %v", gvk.Kind, obj.GetName(), obj.Object["status"])
			}
		}
	}
	n, there := get[slinkyv1beta1.NodeSet](w, "w")
	if !there {
		return
	}
	workers := int32(0)
	for _, p := range w.sim.Objects(podKind) {
		if isWorker(p) && available(p) && p.GetLabels()[slinkyv1beta1.LabelRevisionHash] == n.Status.NodeSetHash {
			workers++
		}
	}
	wanted := n.Replicas()
	if n.SavesPower() {
		wanted = w.powered(n)
	}
	if workers != wanted || !meta.IsStatusConditionTrue(n.Status.Conditions, slinkyv1beta1.ConditionReady) {
		w.fail("the goal is reached", "%d of %d workers are good; %+v", workers, wanted, n.Status.Conditions)
	}
}

// expectRest checks that nothing was written.
func (w *world) expectRest(when string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.calls) > 0 {
		w.failLocked("at rest nothing is written", "%s: %v\n  %s", when, w.calls[0], w.calls[0].body)
	}
	w.calls = nil
}

// reconcileAgain lets every object be reconciled some times more.
func (w *world) reconcileAgain(times int) {
	w.mu.Lock()
	w.calls = nil
	w.mu.Unlock()
	for i := range times {
		w.sim.Repeat("pods") // which wakes their NodeSet as well
		if i < 3 {
			w.sim.Repeat("controllers", "restapis", "nodesets", "configmaps")
		}
		w.sleep(time.Millisecond)
	}
	w.expectRest("in more reconciles")
}

// restartAtTheEnd lets another operator look at everything.
func (w *world) restartAtTheEnd() {
	w.crash()
	w.sleep(20 * time.Second)
	w.expectRest("after a restart at the end")
}

// refer plays a scenario twice without a fault.
func refer(t *testing.T, s scenario, from beginning) *reference {
	t.Helper()
	first, second := run(t, s, from, fault{}, 0), run(t, s, from, fault{}, 0)
	ref := &reference{outcome: first, masked: map[string]bool{}}
	for _, o := range []outcome{first, second} {
		o.report(t, o.violations)
	}
	for _, path := range paths(first.state, second.state) {
		if first.state[path] != second.state[path] {
			ref.masked[path] = true
		}
	}
	for action, n := range second.counts {
		ref.counts[action] = max(ref.counts[action], n)
	}
	ref.took = max(first.took, second.took)
	return ref
}

func paths(states ...map[string]string) []string {
	var out []string
	for _, s := range states {
		for path := range s {
			out = append(out, path)
		}
	}
	return out
}

// beginnings are where scenarios start from, by spec. Each is made once, by the first scenario that asks.
type beginnings struct {
	mu   sync.Mutex
	made map[string]func() beginning
}

// of returns the beginning with a spec.
func (b *beginnings) of(t *testing.T, spec string) beginning {
	t.Helper()
	b.mu.Lock()
	if b.made == nil {
		b.made = map[string]func() beginning{}
	}
	if b.made[spec] == nil {
		b.made[spec] = sync.OnceValue(func() beginning { return begin(t, spec) })
	}
	made := b.made[spec]
	b.mu.Unlock()
	return made()
}

// TestFaults plays every scenario with every fault at every write, or with some of them at some writes.
func TestFaults(t *testing.T) {
	var made beginnings
	for number, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel() // their references, too
			from := made.of(t, s.nodeSet)
			ref := refer(t, s, from)
			if t.Failed() {
				return
			}
			if *trace {
				t.Logf("%s: %d writes in %s, %d fields masked", s.name, len(ref.calls), ref.took, len(ref.masked))
				for _, c := range ref.calls {
					t.Log(c)
				}
			}
			step := *every
			if step > 1 {
				step *= max(1, s.sparse)
			}
			for i, f := range slices.Concat(shared(faults(), *share, number+*part), s.besides) {
				for _, k := range sampled(f.moments(ref.calls), step, i) {
					t.Run(fmt.Sprintf("%s at %d", f.name, k), func(t *testing.T) {
						t.Parallel()
						o := run(t, s, from, f, k)
						o.report(t, o.compare(ref, s, f))
					})
				}
			}
		})
	}
}
