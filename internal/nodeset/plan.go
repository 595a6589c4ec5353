// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeset decides about workers: which pods to make, which to retire and why, and for a single worker whether its
// Slurm node is drained and whether its pod may be deleted. Decisions are pure functions of what was gathered. Nothing
// here is destructive by itself: a retired worker is only marked, and deleted when Slurm says that nothing runs on it.
package nodeset

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Cause says why a worker is retired.
type Cause string

// The causes for which workers are retired.
const (
	// ScaleIn: there are more workers than wanted.
	ScaleIn Cause = "scale-in"
	// Update: the worker is of an old revision, and its successor will be of the new one.
	Update Cause = "update"
)

// Pod is what the plan needs to know of a worker pod.
type Pod struct {
	Name     string
	Ordinal  int
	Revision string
	// Phase is the pod's phase as Kubernetes names it.
	Phase string
	// Scheduled says that it has a Kubernetes node.
	Scheduled bool
	// Ready is its Ready condition, and ReadySince since when it has been so, true or false.
	Ready      bool
	ReadySince time.Time
	// Terminating says that it is being deleted already.
	Terminating bool
	// Retired is the cause for which it was marked before; empty when it was not.
	Retired Cause
	// Cordoned says that somebody asked for its Slurm node to be drained.
	Cordoned bool
	// DeletionCost is the user's; the lower goes first.
	DeletionCost int32
	// Busy says that jobs ran on its Slurm node when Slurm last said something about it.
	Busy bool
	// Deadline is when the last of its jobs must end; zero when it has none, or one without end.
	Deadline time.Time
	Created  time.Time
}

// finished says that its containers have ended for good: nothing can run in it any more.
func (p Pod) finished() bool { return p.Phase == "Failed" || p.Phase == "Succeeded" }

// Input is a NodeSet and its pods at one moment.
type Input struct {
	Now time.Time
	// Replicas is the number of workers wanted.
	Replicas int
	// Revision is the one that new workers are made of.
	Revision string
	// Rolling says that workers of old revisions are retired, at most MaxUnavailable at a time.
	Rolling        bool
	MaxUnavailable int
	// MinReady is how long a worker must be ready to count as available.
	MinReady time.Duration
	Pods     []Pod
}

// Retirement is a worker to mark.
type Retirement struct {
	Pod   string
	Cause Cause
}

// Plan is what to do next. The same input gives the same plan, so that a crash between two of its steps loses nothing.
type Plan struct {
	// Create are ordinals of workers to make, lowest first.
	Create []int
	// Delete are finished pods, in which nothing runs.
	Delete []string
	// Retire are workers to mark; Reprieve are marked ones that are wanted after all.
	Retire   []Retirement
	Reprieve []string
	// Again is when the plan may change by the mere passing of time; zero when it does not.
	Again time.Time
}

// Make decides what to do next.
func Make(in Input) Plan {
	var plan Plan
	occupied := map[int]bool{}
	var staying []Pod
	for _, p := range in.Pods {
		occupied[p.Ordinal] = true
		switch {
		case p.Terminating:
		case p.finished():
			plan.Delete = append(plan.Delete, p.Name)
		default:
			staying = append(staying, p)
		}
	}
	slices.Sort(plan.Delete)

	// A pod that is going keeps its name until it is gone, so it counts: its successor takes the same ordinal.
	for ordinal := 0; len(plan.Create) < in.Replicas-len(in.Pods); ordinal++ {
		if !occupied[ordinal] {
			plan.Create = append(plan.Create, ordinal)
		}
	}

	slices.SortFunc(staying, firstToGo)
	surplus := min(max(0, len(staying)-in.Replicas), len(staying))
	retired := map[string]Cause{}
	for _, p := range staying[:surplus] {
		retired[p.Name] = ScaleIn
	}
	update(in, staying[surplus:], retired, &plan)
	for _, p := range staying {
		switch cause := retired[p.Name]; {
		case cause != "" && p.Retired != cause:
			plan.Retire = append(plan.Retire, Retirement{Pod: p.Name, Cause: cause})
		case cause == "" && p.Retired != "":
			plan.Reprieve = append(plan.Reprieve, p.Name)
		}
	}
	return plan
}

// update chooses workers of old revisions. Those that are not available cost nothing; of the others only as many go as
// may be unavailable, counting all that are missing, going or not ready. Those chosen before stay chosen, but no more than
// may go at once: a short loss of readiness of all workers must not have all of them replaced.
func update(in Input, candidates []Pod, retired map[string]Cause, plan *Plan) {
	serving := 0
	for _, p := range candidates {
		ok, since := in.available(p)
		if !ok && !since.IsZero() && (plan.Again.IsZero() || since.Before(plan.Again)) {
			plan.Again = since
		}
		if ok && p.Retired == "" {
			serving++
		}
	}
	if !in.Rolling {
		return
	}
	keep := in.MaxUnavailable
	budget := in.MaxUnavailable - max(0, in.Replicas-serving)
	for _, p := range candidates {
		ok, _ := in.available(p)
		switch {
		case p.Revision == in.Revision:
		case !ok:
			retired[p.Name] = Update
		case p.Retired != "" && keep > 0:
			retired[p.Name] = Update
			keep--
		case p.Retired == "" && budget > 0:
			retired[p.Name] = Update
			budget--
		}
	}
}

// available says whether a worker has been ready long enough, and if it is ready but not yet long enough, when it will.
func (in Input) available(p Pod) (ok bool, at time.Time) {
	if !p.Ready {
		return false, time.Time{}
	}
	at = p.ReadySince.Add(in.MinReady)
	if in.Now.Before(at) {
		return false, at
	}
	return true, time.Time{}
}

// firstToGo orders workers by who is missed least: contract slinky.md §4.3, after those that are going already.
func firstToGo(a, b Pod) int {
	return cmp.Or(
		-boolean(a.Retired == ScaleIn, b.Retired == ScaleIn),
		boolean(a.Scheduled, b.Scheduled),
		cmp.Compare(phaseRank(a.Phase), phaseRank(b.Phase)),
		boolean(a.Ready, b.Ready),
		cmp.Compare(a.DeletionCost, b.DeletionCost),
		boolean(a.Busy, b.Busy),
		a.lastJob().Compare(b.lastJob()),
		-boolean(a.Cordoned, b.Cordoned),
		cmp.Compare(b.Ordinal, a.Ordinal),
		b.ReadySince.Compare(a.ReadySince),
		b.Created.Compare(a.Created),
		cmp.Compare(a.Name, b.Name),
	)
}

// lastJob is when the worker is free at the latest.
func (p Pod) lastJob() time.Time {
	if p.Busy && p.Deadline.IsZero() {
		return time.Unix(math.MaxInt32*int64(1000), 0) // never, as far as people are concerned
	}
	return p.Deadline
}

func phaseRank(phase string) int {
	return slices.Index([]string{"Pending", "Unknown", "Running"}, phase)
}

// boolean puts false before true.
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
