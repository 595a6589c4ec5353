// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"github.com/coxswain-hpc/coxswain/internal/slurm/fake"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// withoutGPUs is a slurmd that is told of none.
func withoutGPUs(n *fake.Node) { n.Gres, n.Machine.Gres = "", "none" }

// outliving is what becomes of drains that slurmctld has set for a registration, when another slurmd registers well: by that the operator knows
// which of them it may end.
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
		{"one is lost that is invalid", loses("held")},
		{"register with enough", registers(named("cpu"), named("silent"))},
		{"one is lost", loses("silent")},
		{"they are back", registers(named("held"), named("silent"))},
		{"register without the GPUs", registers(named("gpu", withoutGPUs))},
		{"slurmctld restarts again", restarts(true)},
		{"undrain", all(undrain("cpu"), undrain("silent"))},
		{"register with fewer CPUs again", registers(named("cpu", cpus(2)))},
		{"and with enough", registers(named("cpu"))},
	}}
}
