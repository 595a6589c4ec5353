// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package powerstateplan decides what becomes of the requests for nodes in spec.activeNodes of a NodeSetPowerState.
package powerstateplan

import (
	"maps"
	"slices"

	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// Slurm's record of a node shows whether its worker runs (decision 023). spec.activeNodes of a NodeSetPowerState shows that. The operator
// notes beside it what it has shown: a difference is a request of somebody else, which it passes on to Slurm.

// OrdinalPower is what is known about one ordinal of a NodeSet whose workers Slurm powers up and down.
type OrdinalPower struct {
	// Active reports whether spec.activeNodes has it, and Shown whether the operator has shown it there.
	Active, Shown bool
	// Beyond reports whether the ordinal is beyond the NodeSet's number of workers.
	Beyond bool
	// Pod reports whether it has a pod that is not being deleted.
	Pod bool
	// Known reports whether Slurm has the node, which is in State.
	Known bool
	State node.State
	// Held reports whether somebody else has drained the node or set it DOWN.
	Held bool
}

// wanted reports whether the worker is to run: by Slurm's record, and while Slurm does not have the node, by whether it has a pod.
func (o OrdinalPower) wanted() bool {
	if !o.Known {
		return o.Pod
	}
	return o.State.Wanted()
}

// ActiveNodes are what becomes of spec.activeNodes: ordinals in order.
type ActiveNodes struct {
	// Active is what spec.activeNodes is to be, and Shown what the operator notes to have shown there.
	Active, Shown []int32
	// Up and Down are those that Slurm is asked to power up and down. They stay in Active as they were written, until Slurm agrees.
	Up, Down []int32
	// Beyond are those that are asked for beyond the NodeSet's number of workers, Absent those whose nodes Slurm does not have, and Held those
	// that were taken away and somebody else holds.
	Beyond, Absent, Held []int32
}

// activeStep is what becomes of an ordinal in spec.activeNodes.
type activeStep int8

const (
	showWanted activeStep = iota
	keepActive
	keepBeyond
	keepAbsent
	keepHeld
	askUp
	askDown
)

//nolint:gochecknoglobals // a constant list
var activeSteps = rule.List[OrdinalPower, activeStep]{
	Question: "What becomes of an ordinal in spec.activeNodes of a NodeSetPowerState?",
	Rules: []rule.Rule[OrdinalPower, activeStep]{
		{
			Name: "the NodeSet has not so many workers, and somebody has added it", Does: "nothing; condition Stalled names it", Why: "no worker is made beyond replicas",
			When: func(o OrdinalPower) bool { return o.Beyond && o.Active && !o.Shown }, Then: rule.Is[OrdinalPower](keepBeyond),
		},
		{
			Name: "Slurm's word about the node is not certain", Does: "nothing", Why: "it is not known whether Slurm wants it",
			When: func(o OrdinalPower) bool { return !o.Beyond && o.Known && !o.State.Based() }, Then: rule.Is[OrdinalPower](keepActive),
		},
		{
			Name: "nobody has added it or taken it away", Does: "it is there if Slurm wants the node, or there is a pod and Slurm does not have the node yet", Why: "Slurm's record says which workers run",
			When: func(o OrdinalPower) bool { return o.Beyond || o.Active == o.Shown }, Then: rule.Is[OrdinalPower](showWanted),
		},
		{
			Name: "Slurm wants what has been asked for", Does: "the request is done", Why: "Slurm has heard of it, or wanted the same",
			When: func(o OrdinalPower) bool { return o.Active == o.wanted() }, Then: rule.Is[OrdinalPower](showWanted),
		},
		{
			Name: "Slurm does not have the node", Does: "the request waits; the node's message says so", Why: "Slurm can be asked for nothing that it does not have",
			When: func(o OrdinalPower) bool { return !o.Known }, Then: rule.Is[OrdinalPower](keepAbsent),
		},
		{
			Name: "somebody has added it", Does: "POWER_UP", Why: "that is what it asks for",
			When: func(o OrdinalPower) bool { return o.Active }, Then: rule.Is[OrdinalPower](askUp),
		},
		{
			Name: "somebody has taken it away, and somebody else has drained the node or set it DOWN", Does: "the request waits; the node's message says so", Why: "a POWER_DOWN ends a drain, whoever it was",
			When: func(o OrdinalPower) bool { return o.Held }, Then: rule.Is[OrdinalPower](keepHeld),
		},
		{Name: "somebody has taken it away", Does: "POWER_DOWN", Why: "that is what it asks for; Slurm lets jobs end before", Then: rule.Is[OrdinalPower](askDown)},
	},
}

// DecideActiveNodes decides what becomes of spec.activeNodes, by what is known about each ordinal. It must not be called without an answer
// from Slurm.
func DecideActiveNodes(ordinals map[int32]OrdinalPower) (out ActiveNodes) {
	for _, ordinal := range slices.Sorted(maps.Keys(ordinals)) {
		o := ordinals[ordinal]
		active, shown := o.Active, o.Shown
		switch activeSteps.Decide(o) {
		case showWanted:
			active = o.wanted() && !o.Beyond
			shown = active
		case keepActive:
		case keepBeyond:
			out.Beyond = append(out.Beyond, ordinal)
		case keepAbsent:
			out.Absent = append(out.Absent, ordinal)
		case keepHeld:
			out.Held = append(out.Held, ordinal)
		case askUp:
			out.Up = append(out.Up, ordinal)
		case askDown:
			out.Down = append(out.Down, ordinal)
		}
		if active {
			out.Active = append(out.Active, ordinal)
		}
		if shown {
			out.Shown = append(out.Shown, ordinal)
		}
	}
	return out
}
