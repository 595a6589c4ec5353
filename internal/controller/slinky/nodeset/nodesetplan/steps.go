// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan

import (
	"cmp"
	"slices"

	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// StepAction is what a Step does.
type StepAction string

// The actions of a plan.
const (
	// Create makes a worker.
	Create StepAction = "Create"
	// Delete deletes a pod in which nothing runs.
	Delete StepAction = "Delete"
	// Retire drains a worker's node and deletes its pod when nothing runs on it.
	Retire StepAction = "Retire"
	// Unretire keeps a worker that was to go.
	Unretire StepAction = "Unretire"
)

// Step is one thing that is going to happen to a worker.
type Step struct {
	// Pod is the worker's pod.
	Pod    string
	Action StepAction
	Cause  workerpod.Cause
	// Message is what it waits for; Brief reports whether that takes a moment.
	Message string
	Brief   bool
}

// Text returns the step in a few words, for the pod: "update: waiting for job 812, which ends no later than 2026-11-20T14:20:00Z".
func (s Step) Text() string {
	if s.Cause == "" {
		return s.Message
	}
	return string(s.Cause) + ": " + s.Message
}

// MaxSteps is how many steps are shown; the others are counted.
const MaxSteps = 32

// What a step waits for.
const (
	drainedFirst   = "its Slurm node is drained first"
	itsTurn        = "waiting for its turn: no more than maxUnavailable may be unavailable"
	itsMaintenance = "waiting for the maintenance of the ScheduledUpdate"
	nothingRuns    = "nothing runs in it"
	takesItBack    = "the worker is wanted again"
	poweredDown    = "Slurm has powered its node down"
)

// Steps returns what is going to happen, in order. First comes what is done at once, which is left out unless all is asked for. Then come
// the workers on the way out and what they wait for, then those that go after them.
func Steps(in Input, plan Plan, all bool, name func(workerpod.Place) string, waiting map[string]string) (steps []Step, total int) {
	add := func(s Step) {
		if total++; len(steps) < MaxSteps {
			steps = append(steps, s)
		}
	}
	if all {
		for _, pod := range plan.Delete {
			add(Step{Pod: pod, Action: Delete, Message: nothingRuns})
		}
		for _, pod := range plan.PowerDown {
			add(Step{Pod: pod, Action: Delete, Message: poweredDown})
		}
		for _, place := range plan.Create {
			add(Step{Pod: name(place), Action: Create})
		}
		for _, pod := range slices.Sorted(slices.Values(plan.Unretire)) {
			add(Step{Pod: pod, Action: Unretire, Message: takesItBack})
		}
	}
	causes := plan.Causes(in.Pods)
	order := make([]*workerpod.Pod, 0, len(in.Pods))
	for i := range in.Pods {
		order = append(order, &in.Pods[i])
	}
	slices.SortFunc(order, firstToGo)
	for _, p := range order {
		if cause := causes[p.Name]; cause != "" && !p.Terminating {
			jobs := waiting[p.Name]
			add(Step{Pod: p.Name, Action: Retire, Cause: cause, Message: cmp.Or(jobs, drainedFirst), Brief: jobs == ""})
		}
	}
	next := itsTurn
	if in.Scheduled {
		next = itsMaintenance
	}
	for _, p := range order {
		if (in.Rolling || in.Scheduled) && p.Revision != in.Revision && causes[p.Name] == "" && !p.Terminating && !plan.deletes(p.Name) {
			add(Step{Pod: p.Name, Action: Retire, Cause: workerpod.Update, Message: next})
		}
	}
	return steps, total
}

// deletes reports whether a pod is deleted at once.
func (p Plan) deletes(pod string) bool {
	return slices.Contains(p.Delete, pod) || slices.Contains(p.PowerDown, pod)
}

// Causes returns the causes for which pods are retired once the plan is carried out.
func (p Plan) Causes(pods []workerpod.Pod) map[string]workerpod.Cause {
	out := map[string]workerpod.Cause{}
	for _, pod := range pods {
		if pod.Retired != "" && !slices.Contains(p.Unretire, pod.Name) {
			out[pod.Name] = pod.Retired
		}
	}
	for _, r := range p.Retire {
		out[r.Pod] = r.Cause
	}
	return out
}
