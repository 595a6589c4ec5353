// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan

import (
	"slices"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// registrationTimeout is how long a ready worker may be unknown to Slurm before it is made anew. A slurmd registers within a second; a
// slurmctld that restarts takes up to a minute to know all nodes again.
const registrationTimeout = 2 * time.Minute

// presence is whether Slurm has a worker, as far as repair is concerned.
type presence int8

const (
	// present: it has it, or may be about to have it.
	present presence = iota
	// unsettled: it does not have it, and nothing is done about that yet.
	unsettled
	// stillRetired: it was retired as unregistered before, and stays so.
	stillRetired
	// missing: it does not have it, and the worker is made anew, if as many may go.
	missing
)

// sighting is a presence, and when to look again; zero for no special time.
type sighting struct {
	presence
	again time.Time
}

// repairFacts are a worker, and whether the last list of Slurm's nodes is too old to show that some are absent.
type repairFacts struct {
	*Input
	*workerpod.Pod
	outdated bool
}

//nolint:gochecknoglobals // a constant list
var sightings = rule.List[*repairFacts, sighting]{
	Question: "Is a worker made anew because Slurm does not have it?",
	Rules: []rule.Rule[*repairFacts, sighting]{
		{
			Name: "it is registered under another name", Does: "no", Why: "it runs",
			When: func(f *repairFacts) bool { return f.RegisteredAs != "" },
		},
		{
			Name: "it is retired as unregistered, and Slurm does not answer", Does: "it stays retired", Why: "nobody knows better",
			When: func(f *repairFacts) bool { return f.Registered == node.Unknown && f.Retired == workerpod.Unregistered },
			Then: rule.Is[*repairFacts](sighting{presence: stillRetired}),
		},
		{
			Name: "Slurm has it, or does not answer", Does: "no", Why: "it is registered, as far as is known",
			When: func(f *repairFacts) bool { return f.Registered != node.No },
		},
		{
			Name: "it is absent for two minutes, and is retired as unregistered", Does: "yes", Why: "slurmd does not register again by itself",
			When: func(f *repairFacts) bool {
				return f.overdue(f.Pod, f.NodeListTime) && f.Retired == workerpod.Unregistered
			},
			Then: rule.Is[*repairFacts](sighting{presence: missing}),
		},
		{
			Name: "it is absent for two minutes, and the last list is older than that of others", Does: "not yet: Slurm is asked for a list", Why: "it may be missing by mistake, and Slurm would say so for ever",
			When: func(f *repairFacts) bool { return f.overdue(f.Pod, f.NodeListTime) && f.outdated },
			Then: rule.Is[*repairFacts](sighting{presence: unsettled}),
		},
		{
			Name: "it is absent for two minutes", Does: "yes, if no more go than may be unavailable", Why: "somebody has deleted the record of its node, and slurmd does not register again by itself",
			When: func(f *repairFacts) bool { return f.overdue(f.Pod, f.NodeListTime) },
			Then: rule.Is[*repairFacts](sighting{presence: missing}),
		},
		{
			Name: "it is absent for less, and is retired as unregistered", Does: "it stays retired", Why: "nobody remembers since when it is absent, as after a restart of the operator",
			When: func(f *repairFacts) bool { return f.mayRegister() && f.Retired == workerpod.Unregistered },
			Then: rule.Is[*repairFacts](sighting{presence: stillRetired}),
		},
		{
			Name: "it is absent for less", Does: "not yet", Why: "a slurmctld that restarts takes up to a minute to know all nodes again",
			When: (*repairFacts).mayRegister,
			Then: func(f *repairFacts) sighting {
				return sighting{again: workerpod.Later(due(f.Pod), f.Now.Add(time.Second))} // Slurm must have been asked since then
			},
		},
		{Name: "otherwise", Does: "no", Why: "it does not run, and need not be registered"},
	},
}

// mayRegister reports whether the worker is ready, and Slurm has not been asked since it should have it.
func (f *repairFacts) mayRegister() bool { return f.Ready && f.NodeListTime.Before(due(f.Pod)) }

// repair retires workers that run and that Slurm does not have. No more go at once than may be unavailable. When Slurm has lost its state,
// jobs may still run under a slurmd that it does not know; then nothing is done, and Lost is how many there are.
func (in *Input) repair(candidates []*workerpod.Pod, retired map[string]workerpod.Cause, plan *Plan) {
	var absent []*workerpod.Pod
	serving := 0
	plan.Relist = in.outdated()
	if plan.Relist {
		plan.wake(in.Now.Add(time.Second))
	}
	f := &repairFacts{Input: in, outdated: plan.Relist}
	for _, p := range candidates {
		f.Pod = p
		seen := sightings.Decide(f)
		plan.wake(seen.again)
		switch seen.presence {
		case present:
			if p.Ready && p.Retired == "" {
				serving++
			}
		case stillRetired:
			retired[p.Name] = workerpod.Unregistered
		case missing:
			absent = append(absent, p)
		case unsettled:
		}
	}
	var unclear bool
	if plan.Lost, unclear = in.lost(); unclear {
		return
	}
	slices.SortStableFunc(absent, func(a, b *workerpod.Pod) int {
		return -boolean(a.Retired == workerpod.Unregistered, b.Retired == workerpod.Unregistered)
	})
	budget := in.MaxUnavailable - max(0, plan.Desired-serving-len(absent))
	for _, p := range absent[:max(0, min(budget, len(absent)))] {
		retired[p.Name] = workerpod.Unregistered
	}
}

// overdue reports whether a worker had been ready for so long, when Slurm was asked, that Slurm should have had it.
func (in *Input) overdue(p *workerpod.Pod, asked time.Time) bool {
	registers := due(p)
	return p.Ready && p.Phase == "Running" && !p.Terminating && !in.Now.Before(registers) && !asked.Before(registers)
}

// outdated reports whether a worker of the cluster is overdue because Slurm answered that nothing has changed, and not by its last list. If
// that lacks the worker by mistake, Slurm would give the same answer for ever.
func (in *Input) outdated() bool {
	overdue := func(pods []workerpod.Pod) bool {
		for i := range pods {
			if p := &pods[i]; p.Registered == node.No && p.RegisteredAs == "" && in.overdue(p, in.SnapshotTime) && !in.overdue(p, in.NodeListTime) {
				return true
			}
		}
		return false
	}
	return overdue(in.Pods) || overdue(in.Others)
}

// due returns when Slurm should have a worker at the latest. The time since when it is ready is from another clock than ours.
func due(p *workerpod.Pod) time.Time {
	return workerpod.Later(p.ReadySince, p.Absent).Add(registrationTimeout)
}

// lost returns the number of workers that run and that Slurm does not have because it has lost its state. That is so when most workers of
// the cluster are missing, or when one has vanished with most of them. People delete single records, and with care; a state is lost as a
// whole. It counts as lost until no worker is missing: workers that are made anew register, and would soon outnumber those that still run
// what Slurm has forgotten.
//
// Workers that Slurm has never had are no sign of a loss, and not lost. When they are so many that it looks like one, none is made anew:
// the next one would not register either. unclear reports that.
func (in *Input) lost() (ours int, unclear bool) {
	registered, missing, never, ourNever := 0, 0, 0, 0
	lost := in.SlurmStateLost
	for i := range len(in.Pods) + len(in.Others) {
		p := in.workerOfCluster(i)
		gone := forgotten(p)
		mine := 0
		if i < len(in.Pods) {
			mine = 1
		}
		absent := p.Registered == node.No && (gone || in.overdue(p, in.NodeListTime) || in.SlurmStateLost && p.Phase == "Running" && !p.Terminating)
		switch {
		case p.Registered == node.Yes, p.RegisteredAs != "":
			registered++
		case !absent:
		case !gone && in.neverHad(p):
			never++
			ourNever += mine
		default:
			missing++
			ours += mine
		}
		lost = lost || gone
	}
	if lost || missing > registered {
		return ours, ours+ourNever > 0
	}
	return 0, ourNever > 0 && missing+never > registered
}

// maxClockDifference is how much the clocks of Kubernetes' times for made pods and started containers may differ.
const maxClockDifference = time.Minute

// neverHad reports whether Slurm has never had a worker that it does not have: it was never seen there, and the slurmctld that answers has
// run since before the worker was made, so that it has not lost it. The second is what counts for an operator that was away and may have
// missed the registration.
func (in *Input) neverHad(p *workerpod.Pod) bool {
	return !p.Was && !in.SlurmctldSince.IsZero() && p.Created.After(in.SlurmctldSince.Add(maxClockDifference))
}

// Unregistered reports whether a worker of the cluster should be registered and is not, and has never been seen there.
func (in *Input) Unregistered() bool {
	for i := range len(in.Pods) + len(in.Others) {
		if p := in.workerOfCluster(i); p.Registered == node.No && !p.Was && in.overdue(p, in.NodeListTime) {
			return true
		}
	}
	return false
}

// workerOfCluster returns one of Pods and, after those, of Others.
func (in *Input) workerOfCluster(i int) *workerpod.Pod {
	if i < len(in.Pods) {
		return &in.Pods[i]
	}
	return &in.Others[i-len(in.Pods)]
}

// forgotten reports whether Slurm has lost the node of a worker that runs, with most others.
func forgotten(p *workerpod.Pod) bool {
	return p.Registered == node.No && p.Forgotten && p.Was && p.Phase == "Running" && !p.Terminating
}
