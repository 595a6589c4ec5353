// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/health/budget"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

func demo() types.NamespacedName { return types.NamespacedName{Namespace: "slurm", Name: "demo"} }

// world is a NodeSet as Slurm shows it: the reason of each node that is drained.
type world map[string]string

func (w world) workers() (out []budget.Worker) {
	for name, reason := range w {
		words := []string{"IDLE"}
		if reason != "" {
			words = append(words, "DRAIN")
		}
		out = append(out, budget.Worker{Node: name, State: node.Parse(words), Reason: node.Reason{Text: reason}})
	}
	return out
}

func (w world) ask(b *budget.Budgets, by string, wanted ...string) health.DrainVerdict {
	return b.Ask(budget.Request{NodeSet: demo(), By: by, Workers: w.workers(), Wanted: wanted})
}

func TestChecksShareTheDisruptionBudgetOfANodeSet(t *testing.T) {
	b, w := budget.New(health.DrainLimit{Number: 2}, clock.RealClock{}), world{"w-0": "", "w-1": "", "w-2": "", "w-3": "bad disk"}
	var told []string
	b.Notify(func(set types.NamespacedName) { told = append(told, set.String()) })

	if got := w.ask(b, "storage", "w-2"); !slices.Equal(got.Go, []string{"w-2"}) {
		t.Fatalf("the first drain is %+v", got)
	}
	got := w.ask(b, "gpu", "w-0", "w-1")
	if want := (health.DrainVerdict{Go: []string{"w-0"}, Wait: []string{"w-1"}, Out: 2, Limit: 2}); !cmp.Equal(want, got) {
		t.Errorf("another check does not see the drain that is under way: %s", cmp.Diff(want, got))
	}
	if got := b.Of(demo()); !cmp.Equal(budget.Status{Known: true, Waiting: []string{"w-1"}, Out: 2, Workers: 4, Limit: 2}, got) {
		t.Errorf("the status is %+v", got)
	}
	if got := w.ask(b, "gpu", "w-0", "w-1"); !slices.Equal(got.Go, []string{"w-0"}) {
		t.Errorf("asked again, the check gets %+v", got)
	}
	if len(told) != 1 {
		t.Errorf("it was told %d times that others wait", len(told))
	}

	// Slurm shows both drains, and the check gives up one of them: it counts until Slurm shows that the node is back.
	w["w-0"], w["w-2"] = "[node_problem] gpu", node.StorageReason
	w.ask(b, "storage")
	if got := w.ask(b, "gpu", "w-0", "w-1"); !slices.Equal(got.Wait, []string{"w-1"}) {
		t.Errorf("while w-2 is still drained: %+v", got)
	}
	w["w-2"] = ""
	if got := w.ask(b, "gpu", "w-0", "w-1"); !slices.Equal(got.Go, []string{"w-0", "w-1"}) {
		t.Errorf("after w-2 came back: %+v", got)
	}
	if got := b.Of(demo()); len(got.Waiting) != 0 || len(told) != 2 {
		t.Errorf("%v wait, told %v", got.Waiting, told)
	}
	b.Forget(demo())
	if got := b.Of(demo()); got.Workers != 0 || !got.Known || len(told) != 3 {
		t.Errorf("it is not forgotten: %+v, told %v", got, told)
	}
}

func TestWhoWaitsIsNotKnownBeforeEveryCheckHasAsked(t *testing.T) {
	b, w := budget.New(health.DrainLimit{Number: 1}, clock.RealClock{}), world{"w-0": "", "w-1": ""}
	b.Await("storage")
	if b.Of(demo()).Known {
		t.Error("known before anybody asked")
	}
	w.ask(b, "gpu", "w-0", "w-1")
	if b.Of(demo()).Known {
		t.Error("known before the awaited check asked")
	}
	told := 0
	b.Notify(func(types.NamespacedName) { told++ })
	w.ask(b, "storage")
	w.ask(b, "storage")
	if !b.Of(demo()).Known || told != 1 {
		t.Errorf("after it asked: %+v, told %d times", b.Of(demo()), told)
	}
}

// TestTheDisruptionBudgetIsNeverExceededByChecks has two checks ask for random nodes. Slurm shows their drains, and the ends of these, at random times.
func TestTheDisruptionBudgetIsNeverExceededByChecks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := health.DrainLimit{Number: rapid.IntRange(1, 60).Draw(t, "limit"), Percent: rapid.Bool().Draw(t, "percent")}
		b, w := budget.New(limit, clock.RealClock{}), world{}
		for i := range rapid.IntRange(1, 20).Draw(t, "workers") {
			w[fmt.Sprintf("w-%d", i)] = ""
		}
		names := slices.Sorted(func(yield func(string) bool) {
			for name := range w {
				if !yield(name) {
					return
				}
			}
		})
		wants := map[string]map[string]bool{"storage": {}, "gpu": {}}
		drained := map[string]bool{} // by checks, whether or not Slurm shows it
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			by := rapid.SampledFrom([]string{"storage", "gpu"}).Draw(t, "by")
			name := rapid.SampledFrom(names).Draw(t, "node")
			switch rapid.SampledFrom([]string{"fail", "pass", "show"}).Draw(t, "step") {
			case "fail":
				wants[by][name] = true
			case "pass": // a check gives up what Slurm shows, and then Slurm shows the node without the drain
				if !wants["storage"][name] || w[name] != "" {
					delete(wants[by], name)
				}
				if !wants["storage"][name] && !wants["gpu"][name] && w[name] != "" {
					w[name] = ""
					delete(drained, name)
				}
			case "show":
				if drained[name] {
					w[name] = "[node_problem] " + by
				}
			}
			// A node that a check gave up before Slurm showed it was never drained.
			for n := range drained {
				if w[n] == "" && !wants["storage"][n] && !wants["gpu"][n] {
					delete(drained, n)
				}
			}
			var wanted []string
			for n := range wants[by] {
				wanted = append(wanted, n)
			}
			for _, n := range w.ask(b, by, wanted...).Go {
				drained[n] = true
			}
			if most := limit.Of(len(w)); len(drained) > most {
				t.Fatalf("%d of %d are drained by checks, with limit %s", len(drained), len(w), limit)
			}
		}
	})
}

func TestADrainThatNobodyShowsAndNobodyAsksForCountsNoLonger(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	b, w := budget.New(health.DrainLimit{Number: 1}, c), world{"w-0": "", "w-1": ""}
	w.ask(b, "gpu", "w-0")
	c.SetTime(c.Now().Add(2*time.Minute - time.Second))
	if got := w.ask(b, "disk", "w-1"); !slices.Equal(got.Wait, []string{"w-1"}) {
		t.Errorf("while the drain of w-0 may be under way, w-1 gets %+v", got)
	}
	c.SetTime(c.Now().Add(time.Second))
	if got := w.ask(b, "disk", "w-1"); !slices.Equal(got.Go, []string{"w-1"}) {
		t.Errorf("a person has taken w-0 back, and w-1 gets %+v", got)
	}
}

func TestACheckThatWithdrawsLetsNobodyWait(t *testing.T) {
	b, w := budget.New(health.DrainLimit{Number: 1}, clock.RealClock{}), world{"w-0": "", "w-1": "[node_problem] gpu"}
	w.ask(b, "gpu", "w-0")
	told := 0
	b.Notify(func(types.NamespacedName) { told++ })
	b.Withdraw("gpu")
	if got := b.Of(demo()); len(got.Waiting) > 0 || told != 1 {
		t.Errorf("after it was told %d times, %v wait", told, got.Waiting)
	}
	if got := w.ask(b, "disk", "w-0"); !slices.Equal(got.Wait, []string{"w-0"}) {
		t.Errorf("what Slurm shows does not count: %+v", got)
	}
}

// TestADrainCountsUntilSlurmShowsIt: a list of nodes may be older than the drains of the run before.
func TestADrainCountsUntilSlurmShowsIt(t *testing.T) {
	for name, again := range map[string]func(*budget.Budgets, world){
		"a new run begins":               func(b *budget.Budgets, _ world) { b.Withdraw("gpu") },
		"another run of it has its list": func(b *budget.Budgets, w world) { w.ask(b, "gpu") },
	} {
		t.Run(name, func(t *testing.T) {
			c := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
			b, w := budget.New(health.DrainLimit{Number: 1}, c), world{"w-0": "", "w-1": ""}
			w.ask(b, "gpu", "w-0")
			again(b, w)
			if got := w.ask(b, "gpu", "w-1"); !slices.Equal(got.Wait, []string{"w-1"}) {
				t.Errorf("while the drain of w-0 may be under way, w-1 gets %+v", got)
			}
			w["w-0"] = "[node_problem] gpu"
			w.ask(b, "gpu", "w-1")
			w["w-0"] = ""
			if got := w.ask(b, "gpu", "w-1"); !slices.Equal(got.Go, []string{"w-1"}) {
				t.Errorf("a person has taken back what Slurm showed drained, and w-1 gets %+v", got)
			}
			again(b, w)
			c.SetTime(c.Now().Add(2 * time.Minute))
			if got := w.ask(b, "gpu", "w-0"); !slices.Equal(got.Go, []string{"w-0"}) {
				t.Errorf("the drain of w-1 was never shown, and w-0 gets %+v", got)
			}
		})
	}
}
