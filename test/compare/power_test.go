// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// saving is power saving by requests, and not by the clock: no node is idle for SuspendTime, and what is powered up comes, on a busy
// machine after minutes. savingLate is for one that does not.
const (
	saving     = savingFor + "ResumeTimeout=600\n"
	savingLate = savingFor + "ResumeTimeout=50\n"
	savingFor  = `SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=100000
SuspendTimeout=1
`
)

// boots makes the slurmd take its own start for the machine's, as one in a pod must.
func boots(n *fake.Node) { n.Boot = true }

func powers(nodes, state string) func(*system) string {
	return updates(nodes, rest.NodeUpdate{State: state})
}

func leaves(names ...string) func(*system) string {
	return func(s *system) string { s.Leave(names...); return "" }
}

func late(names ...string) func(*system) string {
	return func(s *system) string { s.Late(names...); return "" }
}

// createsCloud makes a node that is powered down, which 24.11 cannot by REST.
func createsCloud(s *system) string {
	return s.refused(s.client.CreateNode(s.t.Context(), "NodeName=c CPUs=4 RealMemory=1000 State=CLOUD"))
}

// createsClouds makes nodes that are powered down, from a description of machines.
func createsClouds(line string) func(*system) string {
	return func(s *system) string { return s.refused(s.client.CreateNode(s.t.Context(), line+" State=CLOUD")) }
}

// clouding returns what becomes of nodes that are made powered down, in place of those that registered. 24.11 can make none by REST.
func clouding() scenario {
	return scenario{name: "power saving of what is made powered down", conf: saving, steps: []step{
		{"register", registers(named("a"))},
		{"power down", powers("a", "POWER_DOWN")},
		{"the slurmd ends", leaves("a")},
		{"delete", deletesA},
		{"make it anew", createsClouds("NodeName=a CPUs=4 Sockets=4 CoresPerSocket=1 ThreadsPerCore=1 RealMemory=1000 MemSpecLimit=100 Feature=x")},
		{"make it once more", createsClouds("NodeName=a CPUs=4 RealMemory=1000")},
		{"power up", powers("a", "POWER_UP")},
		{"a slurmd registers with something else", registers(named("a", boots, memory(2000)))},
		{"power down again", powers("a", "POWER_DOWN")},
		{"the slurmd ends again", leaves("a")},
		{"slurmctld restarts", restarts(true)},
	}}
}

// powering returns what becomes of nodes that power down and up. Slurm looks for such nodes every ten seconds.
func powering() scenario {
	return scenario{name: "power saving", conf: savingLate, steps: []step{
		{"register", registers(named("a"), named("b"))},
		{"power up what is up", powers("a", "POWER_UP")},
		{"power down", powers("a,b", "POWER_DOWN")},
		{"the slurmds end", leaves("a", "b")},
		{"slurmctld restarts", restarts(true)},
		{"drain what is powered down", updates("a", rest.NodeUpdate{State: "DRAIN", Reason: "mine"})},
		{"undrain it", powers("a", "UNDRAIN")},
		{"down what is powered down", updates("a", rest.NodeUpdate{State: "DOWN", Reason: "its pod ends"})},
		{"resume it", powers("a", "RESUME")},
		{"power up", powers("a", "POWER_UP")},
		{"a slurmd registers that counts as started before", registers(named("a"))},
		{"a slurmd registers that counts as started since", registers(named("a", boots))},
		{"a slurmd registers that nobody asked for", registers(named("b"))},
		{"power down again", powers("a,b", "POWER_DOWN")},
		{"the slurmds end again", leaves("a", "b")},
		{"power up for nothing", powers("b", "POWER_UP")},
		{"the slurmd does not come", late("b")},
		{"resume what did not come", powers("b", "RESUME")},
		{"a job asks for a node", submits(fake.Job{NodeList: []string{"a"}})},
		{"the slurmd comes", registers(named("a", boots))},
		{"create by REST", createsCloud},
	}}
}

// resuming returns what lets Slurm ask again for a node that was drained or set DOWN and is powered down.
func resuming() scenario {
	return scenario{name: "power saving of what is drained", conf: saving, steps: []step{
		{"register", registers(named("a"), named("b"))},
		{"drain", updates("a", rest.NodeUpdate{State: "DRAIN", Reason: "mine"})},
		{"power down, which ends a drain", powers("a,b", "POWER_DOWN")},
		{"the slurmds end", leaves("a", "b")},
		{"drain what is powered down", updates("a", rest.NodeUpdate{State: "DRAIN", Reason: "slurm-operator: Pod is gone"})},
		{"resume it", powers("a", "RESUME")},
		{"down", updates("b", rest.NodeUpdate{State: "DOWN", Reason: "slurm-operator: Pod is terminating"})},
		{"drain what is down", updates("b", rest.NodeUpdate{State: "DRAIN", Reason: "slurm-operator: Pod is gone"})},
		{"resume that", powers("b", "RESUME")},
	}}
}

// asking returns what becomes of requests for power that Slurm cannot grant at once, or that override an earlier request.
func asking() scenario {
	return scenario{name: "power saving on request", conf: saving, steps: []step{
		{"register", registers(named("a"), named("b"), named("c"))},
		{"a job", submits(fake.Job{NodeList: []string{"a"}})},
		{"power down what is busy", powers("a", "POWER_DOWN")},
		{"the job ends", job((driver).Cancel, 1)},
		{"the slurmd ends", leaves("a")},
		{"drain what is powered down", updates("a", rest.NodeUpdate{State: "DRAIN", Reason: "mine"})},
		{"power up what is drained", powers("a", "POWER_UP")},
		{"the slurmd comes", registers(named("a", boots))},
		{"power down, and the slurmd ends", powers("b", "POWER_DOWN")},
		{"the other slurmd ends", leaves("b")},
		{"down what is powered down", updates("b", rest.NodeUpdate{State: "DOWN", Reason: "broken"})},
		{"power up what is DOWN", powers("b", "POWER_UP")},
		{"a job there", submits(fake.Job{NodeList: []string{"c"}})},
		{"power down what is busy, once more", powers("c", "POWER_DOWN")},
		{"power up what is to power down", powers("c", "POWER_UP")},
		{"the job on the busy node ends", job((driver).Cancel, 2)},
	}}
}
