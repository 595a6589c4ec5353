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

//nolint:gochecknoglobals // a constant list
var rollingUpdates = rule.List[*podFacts, bool]{
	Question: "Is a worker replaced by a rolling update?",
	Rules: []rule.Rule[*podFacts, bool]{
		{
			Name: "it is of the newest revision", Does: "no", Why: "it is what it should be",
			When: func(f *podFacts) bool { return f.Pod.Revision == f.Input.Revision },
		},
		{
			Name: "it is not available", Does: "yes", Why: "that costs nothing",
			When: func(f *podFacts) bool { return !f.available }, Then: rule.Is[*podFacts](true),
		},
		{
			Name: "it was chosen before, and fewer than maxUnavailable were so", Does: "yes", Why: "who was chosen stays chosen, but a short loss of readiness of all workers must not have all of them replaced",
			When: func(f *podFacts) bool { return f.Retired != "" && f.keep > 0 },
			Then: func(f *podFacts) bool {
				f.keep--
				return true
			},
		},
		{
			Name: "maxUnavailable allows one more", Does: "yes", Why: "all that are missing, going, not ready or waiting for checks are counted",
			When: func(f *podFacts) bool { return f.Retired == "" && f.budget > 0 },
			Then: func(f *podFacts) bool {
				f.budget--
				return true
			},
		},
		{Name: "otherwise", Does: "not yet", Why: "no more than maxUnavailable may be unavailable"},
	},
}

//nolint:gochecknoglobals // a constant list
var scheduledUpdates = rule.List[*podFacts, bool]{
	Question: "Is a worker replaced by a scheduled update?",
	Rules: []rule.Rule[*podFacts, bool]{
		{
			Name: "it is of the newest revision", Does: "no", Why: "it is what it should be",
			When: func(f *podFacts) bool { return f.Pod.Revision == f.Input.Revision },
		},
		{
			Name: "its Slurm node is in the maintenance of the NodeSet", Does: "yes", Why: "that is what the maintenance is for",
			When: func(f *podFacts) bool { return f.Maintained == node.Yes }, Then: rule.Is[*podFacts](true),
		},
		{
			Name: "Slurm does not say whether it is, and the worker was chosen before", Does: "yes", Why: "what Slurm does not say leaves a worker as it is",
			When: func(f *podFacts) bool { return f.Maintained == node.Unknown && f.Retired == workerpod.Update }, Then: rule.Is[*podFacts](true),
		},
		{Name: "otherwise", Does: "not yet", Why: "its maintenance has not begun"},
	},
}

// update chooses workers of old revisions. Of the available ones, only as many go as may be unavailable.
func (in *Input) update(f *podFacts, candidates []*workerpod.Pod, retired map[string]workerpod.Cause, plan *Plan) {
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
	f.keep = in.MaxUnavailable
	// While a scale-in waits to hear when jobs end, more serve than are wanted, and those chosen before are not missing.
	f.budget = in.MaxUnavailable - max(0, plan.Desired-serving, min(chosen, in.MaxUnavailable))
	for _, p := range candidates {
		f.Pod = p
		f.available, _ = in.available(p)
		if in.Scheduled && scheduledUpdates.Decide(f) || in.Rolling && rollingUpdates.Decide(f) {
			retired[p.Name] = workerpod.Update
		}
	}
}

// available returns whether a worker has been ready long enough and needs no check before it takes jobs, and if it is ready but not long
// enough, when it will be.
func (in *Input) available(p *workerpod.Pod) (ok bool, at time.Time) {
	if !p.Ready || slices.ContainsFunc(p.Unchecked, func(check string) bool { return slices.Contains(in.RequiredChecks, check) }) {
		return false, time.Time{}
	}
	// The time is from another clock than ours, which must not matter when no time has to pass.
	at = p.ReadySince.Add(in.MinReady)
	if in.MinReady > 0 && in.Now.Before(at) {
		return false, at
	}
	return true, time.Time{}
}
