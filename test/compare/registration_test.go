// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// withoutGPUs makes the slurmd one without GPUs.
func withoutGPUs(n *fake.Node) { n.Gres, n.Machine.Gres = "", "none" }

// outliving returns what becomes of drains that slurmctld has set for a registration, when another slurmd registers well: it shows the
// operator which of them it may end.
func outliving() scenario {
	undrain := func(name string) func(*system) string { return updates(name, rest.NodeUpdate{State: "UNDRAIN"}) }
	return scenario{name: "drains that outlive their registration", conf: "SlurmdTimeout=10\nMessageTimeout=3", steps: []step{
		{"register", registers(named("cpu"), named("held"), named("silent"))},
		{"a person drains one", updates("held", rest.NodeUpdate{State: "DRAIN", Reason: "disk"})},
		{"register with fewer CPUs", registers(named("cpu", cpus(2)), named("held", cpus(2)), named("silent", cpus(2)))},
		{"register with GPUs that are not there", registers(named("gpu", gpus(2)))},
		{"slurmctld restarts", restarts(true)},
		{"note it", updates("cpu", rest.NodeUpdate{Comment: new("noted")})},
		{"undrain what is invalid", undrain("cpu")},
		{"a slurmd is lost whose node is invalid", loses("held")},
		{"register with enough", registers(named("cpu"), named("silent"))},
		{"a slurmd is lost", loses("silent")},
		{"the lost slurmds are back", registers(named("held"), named("silent"))},
		{"register without the GPUs", registers(named("gpu", withoutGPUs))},
		{"slurmctld restarts again", restarts(true)},
		{"undrain", all(undrain("cpu"), undrain("silent"))},
		{"register with fewer CPUs again", registers(named("cpu", cpus(2)))},
		{"register with enough again", registers(named("cpu"))},
	}}
}

// drained is a slurmd that makes its record drained.
func drained(n *fake.Node) { n.Drained = "slurm-operator: waits for checks" }

// drainedAtFirst returns what becomes of a drain with which a record is made: only that registration sets it, and nothing but an undrain
// ends it.
func drainedAtFirst() scenario {
	undrain := func(name string) func(*system) string { return updates(name, rest.NodeUpdate{State: "UNDRAIN"}) }
	return scenario{name: "records that are made drained", conf: "SlurmdTimeout=10\nMessageTimeout=3", steps: []step{
		{"register", registers(named("new", drained), named("old"), named("lost"))},
		{"submit", submits(fake.Job{NodeList: []string{"new"}})},
		{"slurmctld restarts", restarts(true)},
		{"register once more", registers(named("new", drained))},
		{"undrain", undrain("new")},
		{"end the job", all(job((driver).Finish, 1))},
		{"register again", registers(named("new", drained), named("old", drained))},
		{"a slurmd is lost", loses("lost")},
		{"the lost slurmd registers drained", registers(named("lost", drained))},
		{"the slurmd is lost again", loses("lost")},
		{"drain the lost", updates("lost", rest.NodeUpdate{State: "DRAIN", Reason: "slurm-operator: waits for checks"})},
		{"the slurmd is back", registers(named("lost", drained))},
		{"undrain it", undrain("lost")},
		{"delete one", all(loses("old"), deletes("old"))},
		{"the slurmd of the deleted node makes another record", registers(named("old", drained))},
	}}
}
