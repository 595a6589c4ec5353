// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import "slices"

// Wanted reports whether Slurm's power saving wants the machine of a node to run (sinfo(1), NODE STATE CODES): it is in service or
// powered up, or a power-up has been requested. A node for which POWER_DOWN has been requested is not wanted, even while its last jobs
// run.
func (s State) Wanted() bool {
	switch {
	case s.Has(PowerDown), s.Has(PowerDownASAP), s.Has(PowerDownForce), s.Has(PowerDrain):
		return false
	case s.Has(PowerUp), s.Has(PoweringUp):
		return true
	}
	return !s.Has(PoweredDown) && !s.Has(PoweringDown)
}

// Power is the state without the words that change with the jobs of a node and with reservations. It is empty for one that is in
// service without any other such word.
func (s State) Power() string {
	words := slices.DeleteFunc(slices.Clone(s.words), func(w Word) bool {
		switch w {
		case Idle, Allocated, Mixed, Completing, Planned, Reserved, Maintenance, Blocked:
			return true
		}
		return false
	})
	if len(words) == 0 {
		return ""
	}
	return State{words: words}.String()
}
