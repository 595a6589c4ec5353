// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// Cause is why a worker is retired.
type Cause string

// The causes for which workers are retired.
const (
	// ScaleIn: there are more workers than wanted, or its Kubernetes node does not fit it any more.
	ScaleIn Cause = "scale-in"
	// Update: the worker is of an old revision, and its successor will be of the new one.
	Update Cause = "update"
	// Replace: the worker was made for another scaling mode or has another host name than it should have now.
	Replace Cause = "replace"
	// Unregistered: the worker runs, and Slurm does not have its node.
	Unregistered Cause = "unregistered"
)

// Pod is what the plan needs to know about a worker pod.
type Pod struct {
	Name string
	// Ordinal is its number; negative when it has none, as in scaling mode DaemonSet.
	Ordinal int
	// Daemon reports whether it was made in scaling mode DaemonSet.
	Daemon bool
	// Node is the Kubernetes node on which it runs, or to which it is bound before it is scheduled; empty for any.
	Node string
	// Hostname is its host name.
	Hostname string
	Revision string
	// Phase is the pod's phase as Kubernetes names it.
	Phase string
	// Scheduled reports whether it has a Kubernetes node.
	Scheduled bool
	// Unschedulable reports whether Kubernetes has found no node for it.
	Unschedulable bool
	// Ready is its Ready condition, and ReadySince since when it has been so, true or false.
	Ready      bool
	ReadySince time.Time
	// Terminating reports whether it is being deleted already.
	Terminating bool
	// Retired is the cause for which it was marked before; empty when it was not.
	Retired Cause
	// RetiredAt is since when it is to go, for whatever cause; zero when that is not noted.
	RetiredAt time.Time
	// Cordoned reports whether somebody asked for its Slurm node to be drained.
	Cordoned bool
	// Protected reports whether it carries the label that keeps it from being evicted.
	Protected bool
	// DeletionCost is the user's; the lower goes first.
	DeletionCost int32
	// Busy reports whether jobs ran on its Slurm node by Slurm's last answer about it.
	Busy bool
	// Deadline is when the last of its jobs must end; zero when it has none, or one without end, if DeadlineKnown. It is also zero when it is
	// not known.
	Deadline      time.Time
	DeadlineKnown bool
	Created       time.Time
	// Absent is since when Slurm, whenever it was asked, did not have its node; zero when it has, or it is not known.
	Absent time.Time
	// Elsewhere is the Slurm node that its slurmd has registered as, if that is not the expected one.
	Elsewhere string
	// Registered answers whether Slurm has its node, and Maintained whether that is in the maintenance of a ScheduledUpdate. Both are Unknown
	// unless Slurm has just answered, and where nobody needs to know.
	Registered node.Answer
	Maintained node.Answer
	// Was reports whether Slurm has had its node since it runs, and Forgotten whether Slurm lost it together with most others.
	Was       bool
	Forgotten bool
}

// finished reports whether its containers have ended for good: nothing can run in it any more.
func (p *Pod) finished() bool { return p.Phase == "Failed" || p.Phase == "Succeeded" }

// lastJob returns when the worker is free at the latest.
func (p *Pod) lastJob() time.Time {
	if p.Busy && (p.Deadline.IsZero() || !p.Deadline.Before(Never())) {
		return time.Unix(math.MaxInt32*int64(1000), 0) // never, as far as people are concerned
	}
	return p.Deadline
}

// firstToGo orders workers by who is missed least: docs/contributors/predecessors/slinky-workers.md#order-of-scale-in, after those that are
// going already and have no jobs. One that is going and turns out to have jobs stays when an idle one can go instead. Of two with jobs the
// one that is going already goes, so that drains do not wander about.
func firstToGo(a, b *Pod) int {
	return cmp.Or(
		whateverRuns(a, b),
		a.lastJob().Compare(b.lastJob()),
		-boolean(a.Cordoned, b.Cordoned),
		cmp.Compare(b.Ordinal, a.Ordinal),
		b.ReadySince.Compare(a.ReadySince),
		b.Created.Compare(a.Created),
		cmp.Compare(a.Name, b.Name),
	)
}

// whateverRuns orders workers by what does not depend on when jobs end: the first part of firstToGo.
func whateverRuns(a, b *Pod) int {
	return cmp.Or(
		-boolean(a.Retired == ScaleIn && !a.Busy, b.Retired == ScaleIn && !b.Busy),
		boolean(a.Scheduled, b.Scheduled),
		cmp.Compare(phaseRank(a.Phase), phaseRank(b.Phase)),
		boolean(a.Ready, b.Ready),
		cmp.Compare(a.DeletionCost, b.DeletionCost),
		boolean(a.Busy, b.Busy),
		-boolean(a.Retired == ScaleIn, b.Retired == ScaleIn),
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
