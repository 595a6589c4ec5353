// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake

import "slices"

// Power is where a node is in Slurm's power saving (sinfo(1), NODE STATE CODES). SuspendTimeout, the time that slurmctld gives a node
// to power down, is zero here, and no node powers down by itself.
type Power int8

// The powers.
const (
	PoweredUp Power = iota
	PoweredDown
	// PoweringUp: slurmctld has called ResumeProgram, and waits for a slurmd that has started since.
	PoweringUp
)

// resumeTimeoutReached is slurmctld's reason for a node that did not come in time.
const resumeTimeoutReached = "ResumeTimeout reached"

// powerOf is where a new record begins.
func powerOf(n Node) Power {
	if n.cloud {
		return PoweredDown
	}
	return PoweredUp
}

// powersUp reports whether a registration puts a node into service. While it is powering up, a machine that started before it was asked
// for does not count.
func (n *node) powersUp(registration Node) bool {
	if registration.cloud {
		return false
	}
	return n.power == PoweredDown || registration.Boot
}

// powerUp lets slurmctld ask for a node that is powered down.
func (s *Slurm) powerUp(n *node) {
	if n.power == PoweredDown {
		n.power, n.notResponding = PoweringUp, true
		s.nodeTime = s.clock
	}
}

// setPower is what an administrator asks for. One that is busy powers down when its jobs have ended.
func (s *Slurm) setPower(n *node, state string) {
	if state == "POWER_UP" {
		s.powerUp(n)
		return
	}
	if n.power != PoweredUp {
		return
	}
	if n.sinks = n.busy(); !n.sinks {
		n.powerDown()
	}
}

// powerDown powers a node down, which ends a drain. The reason stays.
func (n *node) powerDown() {
	n.power, n.sinks, n.notResponding, n.drain = PoweredDown, false, false, false
}

// sink powers down a node that was to power down when its jobs have ended.
func (n *node) sink() {
	if n.sinks && !n.busy() {
		n.powerDown()
	}
}

// waits reports whether a job has nodes that are powering up.
func (s *Slurm) waits(j *job) bool {
	return j.state == "RUNNING" && slices.ContainsFunc(j.nodes, func(name string) bool {
		n := s.nodes[name]
		return n != nil && n.power == PoweringUp
	})
}

// resumed updates a node that returns to service. Slurm before 25.05 counts one that is powered down as not responding then. The slurmd
// of any other is asked at once, and answers.
func (s *Slurm) resumed(n *node) {
	if n.power == PoweredDown && s.old() {
		n.notResponding = true
	}
	if n.answers() && !n.notResponding {
		s.heard(n)
	}
}

// Late lets ResumeTimeout pass for nodes that are powering up: they are DOWN, and their jobs are requeued.
func (s *Slurm) Late(names ...string) {
	defer s.lock()()
	for _, name := range names {
		n := s.nodes[name]
		if n == nil || n.power != PoweringUp {
			continue
		}
		n.power, n.notResponding = PoweredDown, false
		reason := resumeTimeoutReached
		if n.reason != "" {
			reason = n.reason + " : " + reason
		}
		s.setDown(n, reason, "slurm")
	}
	s.schedule()
}
