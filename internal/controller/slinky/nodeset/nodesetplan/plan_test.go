// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// aPod returns a running, ready worker of revision new, changed by options.
func aPod(ordinal int, options ...func(*workerpod.Pod)) workerpod.Pod {
	p := workerpod.Pod{
		Name: fmt.Sprintf("w-%d", ordinal), Ordinal: ordinal, Revision: "new", Phase: "Running",
		Scheduled: true, Ready: true, ReadySince: noon.Add(-time.Hour), Created: noon.Add(-time.Hour),
	}
	for _, o := range options {
		o(&p)
	}
	return p
}

func old(p *workerpod.Pod)         { p.Revision = "old" }
func busy(p *workerpod.Pod)        { p.Busy, p.DeadlineKnown = true, true }
func failed(p *workerpod.Pod)      { p.Phase, p.Ready = "Failed", false }
func succeeded(p *workerpod.Pod)   { p.Phase, p.Ready = "Succeeded", false }
func pending(p *workerpod.Pod)     { p.Phase, p.Ready, p.Scheduled = "Pending", false, false }
func scheduled(p *workerpod.Pod)   { p.Phase, p.Ready = "Pending", false }
func lost(p *workerpod.Pod)        { p.Phase, p.Ready = "Unknown", false }
func unready(p *workerpod.Pod)     { p.Ready = false }
func unchecked(p *workerpod.Pod)   { p.Unchecked = []string{"disk"} }
func terminating(p *workerpod.Pod) { p.Terminating = true }
func cordoned(p *workerpod.Pod)    { p.Cordoned = true }
func scaledIn(p *workerpod.Pod)    { p.Retired, p.Cordoned = workerpod.ScaleIn, true }
func updating(p *workerpod.Pod)    { p.Retired, p.Cordoned = workerpod.Update, true }

func cost(n int32) func(*workerpod.Pod) { return func(p *workerpod.Pod) { p.DeletionCost = n } }

func jobsUntil(d time.Duration) func(*workerpod.Pod) {
	return func(p *workerpod.Pod) { p.Busy, p.Deadline, p.DeadlineKnown = true, noon.Add(d), true }
}

func readyFor(d time.Duration) func(*workerpod.Pod) {
	return func(p *workerpod.Pod) { p.ReadySince = noon.Add(-d) }
}

func createdBefore(d time.Duration) func(*workerpod.Pod) {
	return func(p *workerpod.Pod) { p.Created = noon.Add(-d) }
}

// retire returns the retirements of workers with one cause.
func retire(cause workerpod.Cause, names ...string) []nodesetplan.Retirement {
	var out []nodesetplan.Retirement
	for _, n := range names {
		out = append(out, nodesetplan.Retirement{Pod: n, Cause: cause})
	}
	return out
}

func TestMake(t *testing.T) {
	tests := []struct {
		name string
		in   nodesetplan.Input
		want nodesetplan.Plan
	}{
		{"nothing is done at rest", nodesetplan.Input{Replicas: 2, Pods: []workerpod.Pod{aPod(0), aPod(1)}}, nodesetplan.Plan{}},
		{"the first workers are made from ordinal 0", nodesetplan.Input{Replicas: 3}, nodesetplan.Plan{Create: places(0, 1, 2)}},
		{"holes are filled first", nodesetplan.Input{Replicas: 4, Pods: []workerpod.Pod{aPod(1), aPod(3)}}, nodesetplan.Plan{Create: places(0, 2)}},
		{"a worker above a hole stays when there are enough", nodesetplan.Input{Replicas: 2, Pods: []workerpod.Pod{aPod(1), aPod(3)}}, nodesetplan.Plan{}},
		{"a terminating pod keeps its place until it is gone", nodesetplan.Input{Replicas: 2, Pods: []workerpod.Pod{aPod(0, terminating), aPod(1)}}, nodesetplan.Plan{}},
		{"beside a terminating pod only what is missing is made", nodesetplan.Input{Replicas: 3, Pods: []workerpod.Pod{aPod(0, terminating), aPod(1)}}, nodesetplan.Plan{Create: places(2)}},
		{"a failed or succeeded pod is deleted, its successor waits until it is gone",
			nodesetplan.Input{Replicas: 3, Pods: []workerpod.Pod{aPod(2, succeeded), aPod(1, failed), aPod(0)}}, nodesetplan.Plan{Delete: []string{"w-1", "w-2"}}},
		{"a failed pod that is going already is left alone", nodesetplan.Input{Replicas: 1, Pods: []workerpod.Pod{aPod(0, failed, terminating)}}, nodesetplan.Plan{}},
		{"a failed pod is no reason to keep one worker more",
			nodesetplan.Input{Replicas: 1, Pods: []workerpod.Pod{aPod(0), aPod(1), aPod(2, failed)}}, nodesetplan.Plan{Delete: []string{"w-2"}, Retire: retire(workerpod.ScaleIn, "w-1")}},
		{"a terminating pod is one that goes, so that no other has to",
			nodesetplan.Input{Replicas: 1, Pods: []workerpod.Pod{aPod(0), aPod(1, terminating)}}, nodesetplan.Plan{}},
		{"a pod on a lost Kubernetes node is not replaced by guesswork", nodesetplan.Input{Replicas: 2, Pods: []workerpod.Pod{aPod(0), aPod(1, lost)}}, nodesetplan.Plan{}},
		{"a NodeSet that wants no worker retires all", nodesetplan.Input{Replicas: 0, Pods: []workerpod.Pod{aPod(0), aPod(1)}}, nodesetplan.Plan{Retire: retire(workerpod.ScaleIn, "w-1", "w-0")}},
		{"a worker that was retired before is retired still, and nobody else",
			nodesetplan.Input{Replicas: 2, Pods: []workerpod.Pod{aPod(0, scaledIn), aPod(1), aPod(2)}}, nodesetplan.Plan{}},
		{"a worker that turns out to have jobs stays when an idle one can go instead",
			nodesetplan.Input{SnapshotTime: noon, NodeListTime: noon, Replicas: 2, Pods: []workerpod.Pod{aPod(0), aPod(1, busy), aPod(2, scaledIn, busy)}},
			nodesetplan.Plan{Retire: retire(workerpod.ScaleIn, "w-0"), Unretire: []string{"w-2"}}},
		{"of two workers with jobs the one that was chosen goes, whatever ends first",
			nodesetplan.Input{Replicas: 1, Pods: []workerpod.Pod{aPod(0, scaledIn, busy), aPod(1, jobsUntil(time.Minute))}}, nodesetplan.Plan{}},
		{"one more replica unretires the last choice",
			nodesetplan.Input{Replicas: 2, Pods: []workerpod.Pod{aPod(0), aPod(1, scaledIn), aPod(2, scaledIn)}}, nodesetplan.Plan{Unretire: []string{"w-1"}}},
		{"all replicas back unretire all", nodesetplan.Input{Replicas: 3, Pods: []workerpod.Pod{aPod(0), aPod(1, scaledIn), aPod(2, scaledIn)}}, nodesetplan.Plan{Unretire: []string{"w-2", "w-1"}}},
		{"a worker cordoned by a user is not unretired", nodesetplan.Input{Replicas: 1, Pods: []workerpod.Pod{aPod(0, cordoned)}}, nodesetplan.Plan{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.in.Now, tt.in.Revision, tt.in.Rolling, tt.in.MaxUnavailable = noon, "new", true, 1
			check(t, tt.in, tt.want)
		})
	}
}

// places returns the places of workers without a Kubernetes node of their own.
func places(ordinals ...int) []workerpod.Place {
	var out []workerpod.Place
	for _, n := range ordinals {
		out = append(out, workerpod.Place{Ordinal: n})
	}
	return out
}

func check(t *testing.T, in nodesetplan.Input, want nodesetplan.Plan) {
	t.Helper()
	// Unretired workers are a set.
	want.Desired = in.Desired()
	options := cmp.Options{cmpopts.EquateEmpty(), cmpopts.SortSlices(func(a, b string) bool { return a < b })}
	if diff := cmp.Diff(want, nodesetplan.Make(in), options); diff != "" {
		t.Error(diff)
	}
	slices.Reverse(in.Pods)
	if diff := cmp.Diff(want, nodesetplan.Make(in), options); diff != "" {
		t.Errorf("with the pods in another order: %s", diff)
	}
}

// TestOrderOfScaleIn has a case for each line of docs/contributors/predecessors/slinky-workers.md#order-of-scale-in: the first of two
// workers goes.
func TestOrderOfScaleIn(t *testing.T) {
	tests := []struct {
		name        string
		goes, stays workerpod.Pod
	}{
		{"a worker without a Kubernetes node goes before one with a node", aPod(0, pending), aPod(1, scheduled)},
		{"a pending worker goes before an unknown one", aPod(0, scheduled), aPod(1, lost)},
		{"an unknown worker goes before a running one", aPod(0, lost), aPod(1, unready)},
		{"a worker that is not ready goes before one that is", aPod(0, unready), aPod(1)},
		{"a worker of a lower deletion cost goes first", aPod(0, cost(-1)), aPod(1)},
		{"a worker of a lower deletion cost goes before an idle one", aPod(0, cost(-1), busy), aPod(1)},
		{"an idle worker goes before a busy one", aPod(0), aPod(1, busy)},
		{"an idle worker goes before a busy one with a deadline", aPod(0), aPod(1, jobsUntil(time.Minute))},
		{"a worker whose jobs end earlier goes first", aPod(0, jobsUntil(time.Minute)), aPod(1, jobsUntil(time.Hour))},
		{"a worker whose jobs end goes before one whose jobs have no end", aPod(0, jobsUntil(100*time.Hour)), aPod(1, busy)},
		{"a cordoned worker goes before one that is not", aPod(0, cordoned), aPod(1)},
		{"a worker of a higher ordinal goes first", aPod(1), aPod(0)},
		{"the higher ordinal is found by number", aPod(10), aPod(9)},
		{"a worker that became ready more recently goes first", aPod(0, readyFor(time.Minute)), aPod(0, readyFor(time.Hour))},
		{"a worker that was created more recently goes first", aPod(0, createdBefore(time.Minute)), aPod(0, createdBefore(time.Hour))},
		{"a worker that is on the way out already, without jobs, goes before everybody", aPod(0, scaledIn), aPod(1, pending)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.goes.Name, tt.stays.Name = "b-goes", "a-stays"
			if tt.goes.Retired == "" {
				check(t, nodesetplan.Input{Now: noon, Revision: "new", Replicas: 1, Pods: []workerpod.Pod{tt.goes, tt.stays}},
					nodesetplan.Plan{Retire: retire(workerpod.ScaleIn, "b-goes")})
				return
			}
			check(t, nodesetplan.Input{Now: noon, Revision: "new", Replicas: 1, Pods: []workerpod.Pod{tt.goes, tt.stays}}, nodesetplan.Plan{})
		})
	}
}

func TestRollingUpdate(t *testing.T) {
	four := func(options ...func(*workerpod.Pod)) []workerpod.Pod {
		return []workerpod.Pod{aPod(0, options...), aPod(1, options...), aPod(2, options...), aPod(3, options...)}
	}
	with := func(pods []workerpod.Pod, changed ...workerpod.Pod) []workerpod.Pod {
		for _, c := range changed {
			for i := range pods {
				if pods[i].Ordinal == c.Ordinal {
					pods[i] = c
				}
			}
		}
		return pods
	}
	tests := []struct {
		name string
		in   nodesetplan.Input
		want nodesetplan.Plan
	}{
		{"as many go as may be unavailable, idle ones and high ordinals first", nodesetplan.Input{MaxUnavailable: 2, Pods: with(four(old), aPod(3, old, busy))},
			nodesetplan.Plan{Retire: retire(workerpod.Update, "w-2", "w-1")}},
		{"no more workers go while the first are going", nodesetplan.Input{MaxUnavailable: 1, Pods: with(four(old), aPod(3, old, updating))}, nodesetplan.Plan{}},
		{"a missing worker counts", nodesetplan.Input{MaxUnavailable: 1, Pods: four(old)[:3]}, nodesetplan.Plan{Create: places(3)}},
		{"a terminating worker counts", nodesetplan.Input{MaxUnavailable: 1, Pods: with(four(old), aPod(3, old, terminating))}, nodesetplan.Plan{}},
		{"a failed worker counts", nodesetplan.Input{MaxUnavailable: 1, Pods: with(four(old), aPod(3, old, failed))}, nodesetplan.Plan{Delete: []string{"w-3"}}},
		{"a new worker that is not ready counts, so that a broken image stops the update", nodesetplan.Input{MaxUnavailable: 1, Pods: with(four(old), aPod(3, unready))}, nodesetplan.Plan{}},
		{"an old worker that is not ready counts, and goes first, for nothing is lost with it", nodesetplan.Input{MaxUnavailable: 1, Pods: with(four(old), aPod(0, old, unready))},
			nodesetplan.Plan{Retire: retire(workerpod.Update, "w-0")}},
		{"all old workers that are not ready go, whatever the budget", nodesetplan.Input{MaxUnavailable: 1, Pods: four(old, unready)},
			nodesetplan.Plan{Retire: retire(workerpod.Update, "w-3", "w-2", "w-1", "w-0")}},
		{"workers that came back meanwhile stay, but for as many as may go", nodesetplan.Input{MaxUnavailable: 1, Pods: four(old, updating)},
			nodesetplan.Plan{Unretire: []string{"w-0", "w-1", "w-2"}}},
		{"a new worker counts as unavailable until it has been ready long enough, and the plan says when that is",
			nodesetplan.Input{MaxUnavailable: 1, MinReady: time.Minute, Pods: with(four(old), aPod(3, readyFor(20*time.Second)))}, nodesetplan.Plan{Again: noon.Add(40 * time.Second)}},
		{"without a time to be ready a new worker counts at once, whatever another clock says since when it is ready",
			nodesetplan.Input{MaxUnavailable: 1, Pods: with(four(old), aPod(3, readyFor(-10*time.Minute)))}, nodesetplan.Plan{Retire: retire(workerpod.Update, "w-2")}},
		{"when a new worker has been ready long enough, the next goes", nodesetplan.Input{MaxUnavailable: 1, MinReady: time.Minute, Pods: with(four(old), aPod(3, readyFor(time.Minute)))},
			nodesetplan.Plan{Retire: retire(workerpod.Update, "w-2")}},
		{"a new worker that waits for a check counts as unavailable, so that a check which fails everywhere stops the update",
			nodesetplan.Input{MaxUnavailable: 1, RequiredChecks: []string{"disk"}, Pods: with(four(old), aPod(3, unchecked))}, nodesetplan.Plan{}},
		{"a new worker counts when the check is required no more", nodesetplan.Input{MaxUnavailable: 1, RequiredChecks: []string{"gpu"}, Pods: with(four(old), aPod(3, unchecked))},
			nodesetplan.Plan{Retire: retire(workerpod.Update, "w-2")}},
		{"a rollback unretires those that are new again", nodesetplan.Input{MaxUnavailable: 2, Pods: with(four(), aPod(3, updating), aPod(2, updating))},
			nodesetplan.Plan{Unretire: []string{"w-2", "w-3"}}},
		{"surplus workers go as surplus, not as old ones", nodesetplan.Input{MaxUnavailable: 1, Pods: append(four(old), aPod(4, old))},
			nodesetplan.Plan{Retire: append(retire(workerpod.ScaleIn, "w-4"), retire(workerpod.Update, "w-3")...)}},
		{"a retired old worker that becomes surplus is told so", nodesetplan.Input{MaxUnavailable: 1, Pods: append(four(), aPod(4, old, updating))},
			nodesetplan.Plan{Retire: retire(workerpod.ScaleIn, "w-4")}},
		{"a worker that was surplus and is old goes as old one, without a moment in between", nodesetplan.Input{MaxUnavailable: 1, Pods: with(four(), aPod(3, old, scaledIn))},
			nodesetplan.Plan{Retire: retire(workerpod.Update, "w-3")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.in.Now, tt.in.Revision, tt.in.Rolling, tt.in.Replicas = noon, "new", true, 4
			check(t, tt.in, tt.want)
		})
	}
	unheard := func(p *workerpod.Pod) { p.Busy = true }
	t.Run("no more workers go while a scale-in waits to hear when jobs end, though too many serve", func(t *testing.T) {
		check(t, nodesetplan.Input{Now: noon, SnapshotTime: noon, Revision: "new", Rolling: true, Replicas: 1, MaxUnavailable: 1, Pods: []workerpod.Pod{
			aPod(0, old, unheard), aPod(1, old, unheard, updating)}}, nodesetplan.Plan{WantJobs: []string{"w-1", "w-0"}, Again: noon.Add(10 * time.Second)})
	})
	t.Run("OnDelete replaces nobody, and unretires those that a rolling update chose", func(t *testing.T) {
		check(t, nodesetplan.Input{Now: noon, Revision: "new", Replicas: 4, MaxUnavailable: 1, Pods: with(four(old), aPod(3, old, updating), aPod(2, old, unready))},
			nodesetplan.Plan{Unretire: []string{"w-3"}})
	})
}
