// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import "github.com/coxswain-hpc/coxswain/internal/slurm/node"

// state is how a node is shown. Its number is in the class of the node's element.
type state int

const (
	idle state = iota
	mixed
	allocated
	draining
	drained
	down
	notResponding
	maintenance
	poweredDown
	unknown
	states // how many there are
)

// String returns the word in the legend.
func (s state) String() string {
	switch s {
	case idle:
		return "idle"
	case mixed:
		return "mixed"
	case allocated:
		return "allocated"
	case draining:
		return "draining"
	case drained:
		return "drained"
	case down:
		return "down"
	case notResponding:
		return "not responding"
	case maintenance:
		return "maintenance"
	case poweredDown:
		return "powered down"
	default:
		return "unknown"
	}
}

// shown returns the state in which a node is shown. The first line that applies counts:
//
//	Slurm has                                     shown as         why
//	POWERED_DOWN, POWERING_DOWN or _UP, FUTURE     powered down     nothing runs there, and that is meant
//	DOWN, ERROR or FAIL                            down             its jobs are lost, whatever else it has
//	NOT_RESPONDING                                 not responding   it will be down soon
//	DRAIN, and busy                                draining
//	DRAIN                                          drained
//	ALLOCATED                                      allocated
//	MIXED or COMPLETING                            mixed            jobs are there
//	MAINTENANCE                                    maintenance      a reservation has begun, and no job is there
//	IDLE, and nothing that is not understood       idle
//	anything else, or nothing                      unknown
//
// A flag that Slurm sets holds in a state that is otherwise not certain. Idle is the absence of flags, and needs a certain state.
func shown(s node.State) state {
	switch {
	case s.Has(node.PoweredDown), s.Has(node.PoweringDown), s.Has(node.PoweringUp), s.Has(node.Future):
		return poweredDown
	case s.Has(node.Down), s.Has(node.Error), s.Has(node.Fail):
		return down
	case s.Has(node.NotResponding):
		return notResponding
	case s.Drain() == node.Yes && s.Busy() == node.Yes:
		return draining
	case s.Drain() == node.Yes:
		return drained
	case s.Has(node.Allocated):
		return allocated
	case s.Busy() == node.Yes:
		return mixed
	case s.InMaintenance() == node.Yes:
		return maintenance
	case s.Base() == node.Idle && s.Certain():
		return idle
	}
	return unknown
}
