// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package realslurm

import (
	"fmt"
	"strings"
)

// StartSlurmd starts the slurmd of a dynamic node on a machine with some number of cores. conf is its configuration. It waits until
// the slurmd runs: each takes the socket of sackd from the one before, and two that do so at the same time end. It also waits until a
// slurmctld that runs has its registration, which would undo what the next step does.
func (b *Box) StartSlurmd(name string, cores int, conf string, args ...string) {
	b.t.Helper()
	if b.ports[name] == 0 { // a record keeps the port that it was made with
		b.ports[name] = 17001 + len(b.ports)
	}
	line := fmt.Sprintf("export HWLOC_SYNTHETIC='package:1 core:%d pu:1'; rm -rf /var/spool/slurmd/%s/hwloc*; exec slurmd -D -Z -N %s --conf 'Port=%d %s' %s",
		cores, name, name, b.ports[name], conf, strings.Join(args, " "))
	before, earlier := len(b.log("slurmd-"+name)), ""
	if b.runs("slurmctld") {
		earlier = b.startOf(name)
	}
	b.start("slurmd-"+name, line)
	b.Wait("slurmd "+name, func() bool {
		said := b.log("slurmd-" + name)[before:]
		return strings.Contains(said, "slurmd version ") || strings.Contains(said, "fatal: ")
	})
	b.Wait("the registration of slurmd "+name, func() bool {
		said := b.log("slurmd-" + name)[before:]
		if !b.runs("slurmctld") || !b.runs("slurmd-"+name) || strings.Contains(said, "Unable to register") {
			return true
		}
		now := b.startOf(name)
		return now != "" && now != earlier
	})
}

// startOf returns when the slurmd of a node started, as slurmctld shows it; empty when it shows none.
func (b *Box) startOf(name string) string {
	shown, err := b.Try("scontrol", "show", "node", name)
	if err != nil {
		return ""
	}
	_, at, _ := strings.Cut(shown, "SlurmdStartTime=")
	at, _, _ = strings.Cut(at, "\n")
	return strings.TrimPrefix(at, "None")
}

// StopSlurmd ends a slurmd. Jobs go on.
func (b *Box) StopSlurmd(name string) {
	b.t.Helper()
	b.stop("slurmd-"+name, "KILL")
}

// StartStatic starts the slurmd of a node that has a line in slurm.conf, on a machine with some number of cores.
func (b *Box) StartStatic(name string, cores int) {
	b.t.Helper()
	b.start("slurmd-"+name, fmt.Sprintf("export HWLOC_SYNTHETIC='package:1 core:%d pu:1'; exec slurmd -D -N %s", cores, name))
	b.Wait("the registration of slurmd "+name, func() bool { return b.startOf(name) != "" })
}
