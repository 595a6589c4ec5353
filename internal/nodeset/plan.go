// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeset decides which workers there are to be: which pods to make, and which to retire and why. Decisions are pure
// functions of what was gathered. Nothing here is destructive by itself: a retired worker is only marked, and deleted when Slurm
// says that nothing runs on it (package worker).
package nodeset

import (
	"slices"
	"time"
)

// Input is a NodeSet and its pods at one moment.
type Input struct {
	Now time.Time
	// Replicas is the number of workers wanted in scaling mode StatefulSet.
	Replicas int
	// Pins are the Kubernetes nodes that workers are to come back to, by ordinal; see Pin.
	Pins map[int]string
	// Daemon is scaling mode DaemonSet: one worker on each of Nodes.
	Daemon bool
	Nodes  []KubeNode
	// Revision is the one that new workers are made of.
	Revision string
	// Rolling says that workers of old revisions are retired, at most MaxUnavailable at a time.
	Rolling        bool
	MaxUnavailable int
	// Scheduled says that they are retired only while their Slurm nodes are in the maintenance of the NodeSet.
	Scheduled bool
	// MinReady is how long a worker must be ready to count as available.
	MinReady time.Duration
	Pods     []Pod
	// Asked is when Slurm was asked about the pods' nodes; zero while it says nothing.
	Asked time.Time
	// Listed is when it was asked for its last list of nodes: what is not in it was not there then.
	Listed time.Time
	// JobsWantedSince is since when Slurm has been asked about the jobs of the workers that the plan before named; zero when it
	// named none.
	JobsWantedSince time.Time
	// Others are the workers of other NodeSets in the same cluster; they need not be there while Slurm has all of Pods.
	Others []Pod
	// Lost says that Slurm was found to have lost its state, and that workers have been missing there since.
	Lost bool
}

// Place is where a worker belongs.
type Place struct {
	// Ordinal is its number in scaling mode StatefulSet.
	Ordinal int
	// Node is the Kubernetes node that it must run on; empty for any.
	Node string
	// Hostname is its host name in scaling mode DaemonSet; empty in the other, where it follows from the ordinal.
	Hostname string
}

// Retirement is a worker to mark.
type Retirement struct {
	Pod   string
	Cause Cause
}

// Plan is what to do next. The same input gives the same plan, so that a crash between two of its steps loses nothing.
type Plan struct {
	// Desired is the number of workers that there should be.
	Desired int
	// Create are workers to make, in order.
	Create []Place
	// Delete are pods in which nothing runs: finished ones, and ones that wait for a Kubernetes node that is none for them.
	Delete []string
	// Retire are workers to mark; Unretire are marked ones that are wanted after all.
	Retire   []Retirement
	Unretire []string
	// WantJobs are workers of which it has to be known when their jobs end.
	WantJobs []string
	// Lost is the number of workers that run and that a Slurm without its state does not have; nothing is done about them.
	Lost int
	// Relist says that Slurm is to list all its nodes anew, because the last list is too old to tell that some are absent.
	Relist bool
	// Again is when the plan may change by the mere passing of time; zero when it does not.
	Again time.Time
}

// wake asks for another look at a time; zero asks for none.
func (p *Plan) wake(at time.Time) { p.Again = Sooner(p.Again, at) }

// Make decides what to do next.
func Make(in Input) Plan {
	plan := Plan{Desired: in.Desired()}
	retired := map[string]Cause{}
	var staying []Pod
	for _, p := range in.Pods {
		switch {
		case p.Terminating:
		case p.finished():
			in.deleteFinished(p, &plan)
		case in.waitsInVain(p):
			plan.Delete = append(plan.Delete, p.Name)
		case p.Daemon != in.Daemon:
			retired[p.Name] = Replace
			staying = append(staying, p)
		default:
			staying = append(staying, p)
		}
	}
	slices.Sort(plan.Delete)
	slices.SortFunc(staying, firstToGo)

	if in.Daemon {
		in.daemons(staying, retired, &plan)
	} else {
		in.ordinals(staying, retired, &plan)
	}
	in.repair(without(staying, retired), retired, &plan)
	in.update(without(staying, retired), retired, &plan)
	for _, p := range staying {
		switch cause := retired[p.Name]; {
		case cause != "" && p.Retired != cause:
			plan.Retire = append(plan.Retire, Retirement{Pod: p.Name, Cause: cause})
		case cause == "" && p.Retired != "":
			plan.Unretire = append(plan.Unretire, p.Name)
		}
	}
	return plan
}

// without are the pods that are not retired.
func without(pods []Pod, retired map[string]Cause) []Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p Pod) bool { return retired[p.Name] != "" })
}

// Desired is the number of workers that there should be.
func (in Input) Desired() int {
	if !in.Daemon {
		return in.Replicas
	}
	occupied := map[string]bool{}
	for _, p := range in.Pods {
		occupied[p.Node] = true
	}
	desired := 0
	for _, n := range in.Nodes {
		if n.Fit >= Belongs || n.Fit >= Stays && occupied[n.Name] {
			desired++
		}
	}
	return desired
}

// minPodLifetime is how long a pod must have existed for its end to be no reason to wait with its successor. Where pods fail at
// once, as on a Kubernetes node that refuses them, twelve a minute are made and not hundreds.
const minPodLifetime = 5 * time.Second

// deleteFinished deletes a finished pod, once it has existed for minPodLifetime.
func (in Input) deleteFinished(p Pod, plan *Plan) {
	if at := p.Created.Add(minPodLifetime); in.Now.Before(at) {
		plan.wake(at)
		return
	}
	plan.Delete = append(plan.Delete, p.Name)
}

// ordinals fills the holes among the ordinals, and retires what is too many.
func (in Input) ordinals(staying []Pod, retired map[string]Cause, plan *Plan) {
	occupied := map[int]bool{}
	for _, p := range in.Pods {
		occupied[p.Ordinal] = true
	}
	// A pod that is going keeps its name until it is gone, so it counts: its successor takes the same ordinal.
	for ordinal := 0; len(plan.Create) < in.Replicas-len(in.Pods); ordinal++ {
		if !occupied[ordinal] {
			plan.Create = append(plan.Create, Place{Ordinal: ordinal, Node: in.Pins[ordinal]})
		}
	}
	candidates := without(staying, retired)
	in.scaleIn(candidates, len(candidates)-in.Replicas, retired, plan)
}

// update chooses workers of old revisions. Those that are not available cost nothing; of the others only as many go as
// may be unavailable, counting all that are missing, going or not ready. Those chosen before stay chosen, but no more than
// may go at once: a short loss of readiness of all workers must not have all of them replaced.
func (in Input) update(candidates []Pod, retired map[string]Cause, plan *Plan) {
	serving, chosen := 0, 0
	for _, p := range candidates {
		ok, since := in.available(p)
		if !ok {
			plan.wake(since)
		}
		switch {
		case ok && p.Retired == "":
			serving++
		case ok && p.Revision != in.Revision:
			chosen++
		}
	}
	if in.Scheduled {
		in.maintained(candidates, retired)
	}
	if !in.Rolling {
		return
	}
	keep := in.MaxUnavailable
	// While a scale-in waits to hear when jobs end, more serve than are wanted, and those chosen before are not missing.
	budget := in.MaxUnavailable - max(0, plan.Desired-serving, min(chosen, in.MaxUnavailable))
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
	// Since when is told by another clock than ours, which must not matter when no time has to pass.
	at = p.ReadySince.Add(in.MinReady)
	if in.MinReady > 0 && in.Now.Before(at) {
		return false, at
	}
	return true, time.Time{}
}
