// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

func answers(names ...string) func(*system) string {
	return func(s *system) string { s.Answer(names...); return "" }
}

// answering returns what becomes of nodes that are DOWN: a, whose slurmd answers slurmctld every few seconds, and d, which has none. When a
// has returned to service, slurmctld has had the time to do the same to d. 24.11 can make no node d by REST.
func answering() scenario {
	both := func(state, reason string) func(*system) string {
		return updates("a,d", rest.NodeUpdate{State: state, Reason: reason})
	}
	return scenario{name: "slurmds that answer", conf: "SlurmdTimeout=10", steps: []step{
		{"register", registers(nodeA())},
		{"create one without a slurmd", creates},
		{"down", all(both("DOWN", "psu"), answers("a"))},
		{"drain what is down, or was", both("DRAIN", "disk")},
		{"undrain that", both("UNDRAIN", "")},
		{"idle", both("IDLE", "")},
		{"drain", both("DRAIN", "disk")},
		{"down what is drained", all(both("DOWN", "fan"), answers("a"))},
		{"undrain what is drained and down, or was", both("UNDRAIN", "")},
		{"resume", both("RESUME", "")},
		{"fail", both("FAIL", "old")},
		{"down what fails", all(both("DOWN", "older"), answers("a"))},
		{"resume what failed", both("RESUME", "")},
		{"a job", submits(fake.Job{NodeList: []string{"a"}})},
		{"down below its job", all(updates("a", rest.NodeUpdate{State: "DOWN", Reason: "psu"}), job((driver).Cancel, 1), answers("a"))},
		{"down without a reason", all(both("DOWN", ""), answers("a"))},
		{"delete what is down", all(both("DOWN", "psu"), deletes("a,d"))},
	}}
}
