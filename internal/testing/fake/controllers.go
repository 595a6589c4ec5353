// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake

import "slices"

// pong is the status of a slurmctld that answers.
const pong = "No error"

// A Controller is one slurmctld in the answer to ping.
type Controller struct {
	Hostname string
	// Status is "No error" when it answers.
	Status string
}

// SetControllers sets which slurmctlds there are, the primary first, and which of them answer; none stands for one that
// answers while the cluster is up.
func (s *Slurm) SetControllers(list ...Controller) {
	defer s.lock()()
	s.controllers = slices.Clone(list)
}

// Load lets slurmctld load a slurm.conf with these SlurmctldParameters. As with each load, jobs end that name a node without a record.
func (s *Slurm) Load(parameters ...string) {
	defer s.lock()()
	if !slices.Equal(s.parameters, parameters) {
		s.miss()
	}
	s.parameters = slices.Clone(parameters)
}

// pings is what ping finds out with a token that is good or not. The caller holds the lock.
func (s *Slurm) pings(good bool) []Controller {
	list := slices.Clone(s.controllers)
	if len(list) == 0 {
		list = []Controller{{Hostname: s.options.Cluster, Status: pong}}
	}
	for i := range list {
		switch {
		case s.down:
			list[i].Status = "Unable to contact slurm controller (connect failure)"
		case !good && list[i].Status == pong:
			list[i].Status = "Protocol authentication error"
		}
	}
	return list
}
