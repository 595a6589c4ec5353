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
