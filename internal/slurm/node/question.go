// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package node

// says returns Yes if Slurm reported w, No if it certainly did not.
func (s State) says(w Word) Answer {
	switch {
	case s.Has(w):
		return Yes
	case s.Based():
		return No
	}
	return Unknown
}

// Busy answers whether jobs run on the node or are still being cleaned up: ALLOCATED, MIXED or COMPLETING. One of these
// words is enough, whatever stands beside it. A flag that is not recognised may mean jobs, too.
func (s State) Busy() Answer {
	busy := s.says(Allocated).Or(s.says(Mixed)).Or(s.says(Completing))
	if busy == No && !s.Certain() {
		return Unknown
	}
	return busy
}

// Drain answers whether Slurm keeps new jobs off the node: DRAIN without UNDRAIN, which asks for the opposite. Both
// words hold in an uncertain state too.
func (s State) Drain() Answer {
	if s.Has(Drain) {
		return AnswerOf(!s.Has(Undrain))
	}
	return s.says(Drain)
}

// Drained answers whether the node is free of jobs and will stay so: Drain and not Busy. Only Yes permits to delete its
// pod.
func (s State) Drained() Answer { return s.Drain().And(s.Busy().Not()) }

// Draining answers whether the node takes no new jobs but still has old ones: Drain and Busy.
func (s State) Draining() Answer { return s.Drain().And(s.Busy()) }

// Down answers whether Slurm has given the node up; jobs that ran there were requeued or failed.
func (s State) Down() Answer { return s.says(Down) }

// NotResponding answers whether slurmctld currently misses the answers of the node's slurmd.
func (s State) NotResponding() Answer { return s.says(NotResponding) }

// InMaintenance answers whether the node is in a maintenance reservation that has begun.
func (s State) InMaintenance() Answer { return s.says(Maintenance) }
