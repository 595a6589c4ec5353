// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan

import (
	"slices"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

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
