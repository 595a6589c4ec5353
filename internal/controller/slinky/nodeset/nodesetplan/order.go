// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// finished reports whether its containers have ended for good: nothing can run in it any more.
func finished(p *workerpod.Pod) bool { return p.Phase == "Failed" || p.Phase == "Succeeded" }

// lastJob returns when the worker is free at the latest.
func lastJob(p *workerpod.Pod) time.Time {
	if p.Busy && (p.Deadline.IsZero() || !p.Deadline.Before(workerpod.Never())) {
		return time.Unix(math.MaxInt32*int64(1000), 0) // never, as far as people are concerned
	}
	return p.Deadline
}

// firstToGo orders workers by who is missed least: docs/contributors/predecessors/slinky-workers.md#order-of-scale-in, after those that are
// going already and have no jobs. One that is going and turns out to have jobs stays when an idle one can go instead. Of two with jobs the
// one that is going already goes, so that drains do not wander about.
func firstToGo(a, b *workerpod.Pod) int {
	return cmp.Or(
		whateverRuns(a, b),
		lastJob(a).Compare(lastJob(b)),
		-boolean(a.Cordoned, b.Cordoned),
		cmp.Compare(b.Ordinal, a.Ordinal),
		b.ReadySince.Compare(a.ReadySince),
		b.Created.Compare(a.Created),
		cmp.Compare(a.Name, b.Name),
	)
}

// whateverRuns orders workers by what does not depend on when jobs end: the first part of firstToGo.
func whateverRuns(a, b *workerpod.Pod) int {
	return cmp.Or(
		-boolean(a.Retired == workerpod.ScaleIn && !a.Busy, b.Retired == workerpod.ScaleIn && !b.Busy),
		boolean(a.Scheduled, b.Scheduled),
		cmp.Compare(phaseRank(a.Phase), phaseRank(b.Phase)),
		boolean(a.Ready, b.Ready),
		cmp.Compare(a.DeletionCost, b.DeletionCost),
		boolean(a.Busy, b.Busy),
		-boolean(a.Retired == workerpod.ScaleIn, b.Retired == workerpod.ScaleIn),
	)
}

func phaseRank(phase string) int {
	return slices.Index([]string{"Pending", "Unknown", "Running"}, phase)
}

// boolean orders false before true.
func boolean(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// maxJobEndsWait is how long a choice waits to hear when jobs end. A scale-in is not urgent, and a Slurm with so many jobs that it takes
// longer is not asked for them again soon.
const maxJobEndsWait = 10 * time.Second

// scaleIn retires the first n of the candidates, which are in the order in which they are to go. Of workers that differ only in when their
// jobs end, none goes before that is known for all of them, or has been waited for long enough; meanwhile Plan.WantJobs names them.
func (in *Input) scaleIn(candidates []*workerpod.Pod, n int, retired map[string]workerpod.Cause, plan *Plan) {
	n = min(max(0, n), len(candidates))
	if in.SnapshotTime.IsZero() {
		// Without Slurm it is not known who is busy by now, so those that are going go.
		slices.SortStableFunc(candidates, func(a, b *workerpod.Pod) int {
			return -boolean(a.Retired == workerpod.ScaleIn, b.Retired == workerpod.ScaleIn)
		})
	}
	if group := in.undecided(candidates, n); len(group) > 0 {
		since := in.JobsWantedSince
		if since.IsZero() {
			since = in.Now
		}
		if until := since.Add(maxJobEndsWait); in.Now.Before(until) {
			plan.wake(until)
			n = slices.IndexFunc(candidates, func(p *workerpod.Pod) bool { return p.Name == group[0].Name })
			for _, p := range group {
				plan.WantJobs = append(plan.WantJobs, p.Name)
				if p.Retired == workerpod.ScaleIn { // it stays so
					retired[p.Name] = workerpod.ScaleIn
				}
			}
		}
	}
	for _, p := range candidates[:n] {
		retired[p.Name] = workerpod.ScaleIn
	}
}

// undecided returns the busy workers, if some of them would be among the first n and some not, just because of when their jobs end, and if
// that is not known for all of them. It is so while Slurm is silent, too: it may just not have answered yet.
func (in *Input) undecided(candidates []*workerpod.Pod, n int) []*workerpod.Pod {
	if n == 0 || n == len(candidates) {
		return nil
	}
	last := candidates[n-1]
	alike := func(p *workerpod.Pod) bool { return whateverRuns(p, last) == 0 }
	if !last.Busy || !alike(candidates[n]) {
		return nil
	}
	var group []*workerpod.Pod
	known := true
	for _, p := range candidates {
		if alike(p) {
			group = append(group, p)
			known = known && p.DeadlineKnown
		}
	}
	if known {
		return nil
	}
	return group
}
