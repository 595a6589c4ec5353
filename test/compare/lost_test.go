// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

func loses(names ...string) func(*system) string {
	return func(s *system) string { s.Lose(names...); return "" }
}

// losing returns what becomes of nodes whose slurmd is gone. Slurm takes some seconds for each step with a loss, so that many nodes
// take it together. With the default MessageTimeout of 10 s it would wait so long for the dead that it counted living nodes among
// them.
func losing() scenario {
	return scenario{name: "lost slurmds", conf: "SlurmdTimeout=10\nMessageTimeout=3", steps: []step{
		{"register", registers(named("idle"), named("drained"), named("failing"), named("job"), named("suspended"), named("two"))},
		{"drain, fail and submit", all(
			updates("drained", rest.NodeUpdate{State: "DRAIN", Reason: "disk"}), updates("failing", rest.NodeUpdate{State: "FAIL", Reason: "old"}),
			submits(fake.Job{NodeList: []string{"job", "two"}}), submits(fake.Job{NodeList: []string{"suspended"}}),
		)},
		{"suspend", job((driver).Suspend, 2)},
		{"slurmds are lost", loses("drained", "failing", "idle", "job", "suspended")},
		// Slurm lets requeued jobs wait for two minutes, the fake does not; nothing depends on when they start.
		{"cancel the jobs", all(job((driver).Cancel, 1), job((driver).Cancel, 2))},
		{"drain the lost", updates("idle", rest.NodeUpdate{State: "DRAIN", Reason: "mine"})},
		{"undrain the lost", updates("drained", rest.NodeUpdate{State: "UNDRAIN"})},
		{"down the lost", updates("failing", rest.NodeUpdate{State: "DOWN", Reason: "older"})},
		{"drain what is down and fails", updates("failing", rest.NodeUpdate{State: "DRAIN", Reason: "oldest"})},
		{"down without a reason", updates("job", rest.NodeUpdate{State: "DOWN"})},
		{"reason alone", updates("suspended", rest.NodeUpdate{Reason: "psu"})},
		{"undrain what is only down", updates("job", rest.NodeUpdate{State: "UNDRAIN"})},
		{"slurmctld restarts", restarts(true)},
		{"reconfigure", reconfigures},
		{"the slurmds are back", registers(named("idle"), named("drained"), named("failing"), named("job"), named("suspended"))},
		{"undrain", updates("idle", rest.NodeUpdate{State: "UNDRAIN"})},
		{"drain twice", updates("idle,drained", rest.NodeUpdate{State: "DRAIN", Reason: "disk"})},
		{"slurmds are lost again", loses("idle", "drained", "job", "two")},
		{"delete one", deletes("two")},
		{"the slurmd of a drained node is back", registers(named("idle"))},
		{"the slurmd of a drained node is lost a third time", loses("idle")},
		{"the slurmd of a drained node is back once more", registers(named("idle"))},
	}}
}
