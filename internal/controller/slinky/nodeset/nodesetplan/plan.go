// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodesetplan decides which workers there are to be: which pods to make, and which to retire and why. Decisions are pure functions of
// what was gathered. Nothing here is destructive by itself: a retired worker is only marked, and deleted when Slurm reports that nothing
// runs on it (package worker).
package nodesetplan

import (
	"slices"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// Input is a NodeSet and its pods at one moment.
type Input struct {
	Now time.Time
	// Replicas is the number of workers wanted in scaling mode StatefulSet.
	Replicas int
	// Pins are the Kubernetes nodes that workers are to come back to, by ordinal; see Pin.
	Pins map[int]string
	// PowerSaving is how Slurm powers the workers up and down; nil where all run.
	PowerSaving *PowerSaving
	// Daemon is scaling mode DaemonSet: one worker on each of Nodes.
	Daemon bool
	Nodes  []KubeNode
	// HostNetwork reports whether workers use the network of the host, so that their Slurm nodes have the host names of their machines.
	HostNetwork bool
	// Revision is the revision that new workers are made from.
	Revision string
	// Rolling reports whether workers of old revisions are retired, at most MaxUnavailable at a time.
	Rolling        bool
	MaxUnavailable int
	// Scheduled reports whether they are retired only while their Slurm nodes are in the maintenance of the NodeSet.
	Scheduled bool
	// MinReady is how long a worker must be ready to count as available.
	MinReady time.Duration
	// RequiredChecks are the checks without which a worker takes no jobs.
	RequiredChecks []string
	Pods           []workerpod.Pod
	// SnapshotTime is when Slurm was asked about the pods' nodes; zero while it does not answer.
	SnapshotTime time.Time
	// NodeListTime is when Slurm was asked for its last list of nodes: a node that is not in it was absent then.
	NodeListTime time.Time
	// JobsWantedSince is since when Slurm has been asked about the jobs of the workers that the plan before named; zero when it named none.
	JobsWantedSince time.Time
	// Others are the workers of other NodeSets in the same cluster; they need not be there while Slurm has all of Pods.
	Others []workerpod.Pod
	// SlurmctldSince is since when the slurmctld that answers has run without a break; zero when that is not known.
	SlurmctldSince time.Time
	// SlurmStateLost reports whether Slurm was found to have lost its state, and workers have been missing there since.
	SlurmStateLost bool
}

// Retirement is a worker to mark.
type Retirement struct {
	Pod   string
	Cause workerpod.Cause
}

// Plan is what to do next. The same input gives the same plan, so that a crash between two of its steps loses nothing.
type Plan struct {
	// Desired is the number of workers that there should be.
	Desired int
	// Create are workers to make, in order.
	Create []workerpod.Place
	// Delete are pods in which nothing runs: finished ones, and ones that wait for a Kubernetes node that does not fit them.
	Delete []string
	// PowerDown are pods of nodes that Slurm has powered down, to delete without a drain.
	PowerDown []string
	// Retire are workers to mark; Unretire are marked ones that are wanted after all.
	Retire   []Retirement
	Unretire []string
	// WantJobs are workers for which it has to be known when their jobs end.
	WantJobs []string
	// Lost is the number of workers that run and that a Slurm without its state does not have; nothing is done about them. Workers that it has
	// never had do not count.
	Lost int
	// Relist reports whether Slurm is to list all its nodes anew: the last list is too old to show that some are absent.
	Relist bool
	// Again is when the plan may change by time alone; zero when it does not.
	Again time.Time
}

// wake asks for another look at a time; zero asks for none.
func (p *Plan) wake(at time.Time) { p.Again = workerpod.Sooner(p.Again, at) }

// podFacts are a NodeSet and one of its pods. Nodes are its Kubernetes nodes in scaling mode DaemonSet.
type podFacts struct {
	*Input
	*workerpod.Pod
	kubeNodes map[string]KubeNode
	// taken are the Kubernetes nodes that have a worker to keep.
	taken map[string]bool
	// cause is why the pod is retired; empty when it is not.
	cause workerpod.Cause
	// available reports whether it counts as available. keep is how many of those chosen for the update before stay chosen, and budget how
	// many more may go.
	available    bool
	keep, budget int
}

// podFate is what becomes of a pod by itself, without a look at the others.
type podFate int8

const (
	podStays podFate = iota
	podIsGoing
	podIsTooYoung
	podIsDeleted
	podIsReplaced
)

//nolint:gochecknoglobals // a constant list
var podFates = rule.List[*podFacts, podFate]{
	Question: "What becomes of a pod, without a look at the others?",
	Rules: []rule.Rule[*podFacts, podFate]{
		{
			Name: "it is being deleted", Does: "nothing", Why: "it keeps its name until it is gone",
			When: func(f *podFacts) bool { return f.Terminating }, Then: rule.Is[*podFacts](podIsGoing),
		},
		{
			Name: "it has failed or succeeded within five seconds", Does: "delete it later", Why: "where pods fail at once, as on a Kubernetes node that refuses them, twelve a minute are made and not hundreds",
			When: func(f *podFacts) bool { return finished(f.Pod) && f.Now.Before(f.Created.Add(minPodLifetime)) }, Then: rule.Is[*podFacts](podIsTooYoung),
		},
		{
			Name: "it has failed or succeeded", Does: "delete it", Why: "its containers have ended for good, so nothing can run in it",
			When: func(f *podFacts) bool { return finished(f.Pod) }, Then: rule.Is[*podFacts](podIsDeleted),
		},
		{
			Name: "it waits for a Kubernetes node that is none for it any more", Does: "delete it", Why: "nothing has ever run in it, and it would wait in vain",
			When: func(f *podFacts) bool { return f.waitsInVain() }, Then: rule.Is[*podFacts](podIsDeleted),
		},
		{
			Name: "it was made for the other scaling mode", Does: "retire it: replace", Why: "its name and host name are those of the other mode",
			When: func(f *podFacts) bool { return f.Pod.Daemon != f.Input.Daemon }, Then: rule.Is[*podFacts](podIsReplaced),
		},
		{Name: "otherwise", Does: "it stays, unless the rules below choose it", Why: "most do", Then: rule.Is[*podFacts](podStays)},
	},
}

// mark is what becomes of our mark on a pod.
type mark int8

const (
	markStays mark = iota
	markRetired
	markUnretired
)

//nolint:gochecknoglobals // a constant list
var podMarks = rule.List[*podFacts, mark]{
	Question: "How is the mark of a retired worker put on and taken off?",
	Rules: []rule.Rule[*podFacts, mark]{
		{
			Name: "it is chosen, and is not marked for this cause", Does: "retire it", Why: "the worker controller drains what is marked, and deletes it when nothing runs there",
			When: func(f *podFacts) bool { return f.cause != "" && f.Retired != f.cause }, Then: rule.Is[*podFacts](markRetired),
		},
		{
			Name: "it is marked, and not chosen any more", Does: "unretire it", Why: "it is wanted after all",
			When: func(f *podFacts) bool { return f.cause == "" && f.Retired != "" }, Then: rule.Is[*podFacts](markUnretired),
		},
		{Name: "otherwise", Does: "nothing", Why: "its mark is right"},
	},
}

// Make decides what to do next.
func Make(in Input) Plan {
	plan := Plan{Desired: in.Desired()}
	retired := map[string]workerpod.Cause{}
	f := &podFacts{Input: &in}
	if in.Daemon {
		f.kubeNodes = in.nodes()
	}
	staying := make([]*workerpod.Pod, 0, len(in.Pods))
	for i := range in.Pods {
		f.Pod = &in.Pods[i]
		switch podFates.Decide(f) {
		case podIsGoing:
		case podIsTooYoung:
			plan.wake(f.Created.Add(minPodLifetime))
		case podIsDeleted:
			plan.Delete = append(plan.Delete, f.Name)
		case podIsReplaced:
			retired[f.Name] = workerpod.Replace
			staying = append(staying, f.Pod)
		case podStays:
			staying = append(staying, f.Pod)
		}
	}
	slices.Sort(plan.Delete)
	slices.SortFunc(staying, firstToGo)

	switch {
	case in.Daemon:
		in.daemons(f, staying, retired, &plan)
	case in.PowerSaving != nil:
		in.powered(staying, retired, &plan)
		staying = slices.DeleteFunc(staying, func(p *workerpod.Pod) bool { return slices.Contains(plan.PowerDown, p.Name) })
	default:
		in.ordinals(staying, retired, &plan)
	}
	in.repair(without(staying, retired), retired, &plan)
	in.update(f, without(staying, retired), retired, &plan)
	for _, p := range staying {
		f.Pod, f.cause = p, retired[p.Name]
		switch podMarks.Decide(f) {
		case markRetired:
			plan.Retire = append(plan.Retire, Retirement{Pod: p.Name, Cause: f.cause})
		case markUnretired:
			plan.Unretire = append(plan.Unretire, p.Name)
		case markStays:
		}
	}
	return plan
}

// without returns the pods that are not retired.
func without(pods []*workerpod.Pod, retired map[string]workerpod.Cause) []*workerpod.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *workerpod.Pod) bool { return retired[p.Name] != "" })
}

// Desired returns the number of workers that there should be.
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

// minPodLifetime is how long a pod must have existed for its successor to be made at once. Where pods fail at once, as on a Kubernetes node
// that refuses them, twelve a minute are made and not hundreds.
const minPodLifetime = 5 * time.Second

// ordinals fills the holes among the ordinals, and retires what is too many.
func (in *Input) ordinals(staying []*workerpod.Pod, retired map[string]workerpod.Cause, plan *Plan) {
	occupied := map[int]bool{}
	for _, p := range in.Pods {
		occupied[p.Ordinal] = true
	}
	// A pod that is going keeps its name until it is gone, so it counts: its successor takes the same ordinal.
	for ordinal := 0; len(plan.Create) < in.Replicas-len(in.Pods); ordinal++ {
		if !occupied[ordinal] {
			plan.Create = append(plan.Create, workerpod.Place{Ordinal: ordinal, Node: in.Pins[ordinal]})
		}
	}
	candidates := without(staying, retired)
	in.scaleIn(candidates, len(candidates)-in.Replicas, retired, plan)
}
