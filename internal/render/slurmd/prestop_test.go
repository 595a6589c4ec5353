// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
	"github.com/coxswain-hpc/coxswain/internal/testing/executable"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// TestTheEndOfAPodKeepsWhatAnAdministratorSaid runs the preStop command with a scontrol that shows a node and notes updates.
func TestTheEndOfAPodKeepsWhatAnAdministratorSaid(t *testing.T) {
	commands := map[bool][]string{} // by whether Slurm powers the workers
	for saves, spec := range map[bool]string{false: `{controllerRef: {name: demo}}`, true: `{controllerRef: {name: demo}, powerSaving: {}}`} {
		pod, err := slurmd.Pod(input(t, spec), workerpod.Place{}, "r")
		if err != nil {
			t.Fatal(err)
		}
		commands[saves] = pod.Spec.Containers[0].Lifecycle.PreStop.Exec.Command
	}
	const idle = "NodeName=w-0 State=IDLE+DYNAMIC_NORM ThreadsPerCore=1"
	tests := []struct {
		name, shown string
		// ends is how scontrol ends.
		ends string
		// saves is true if Slurm powers the workers.
		saves bool
		down  bool
	}{
		{"an idle node is said to be down", idle, "exit 0", false, true},
		{"a node that we drained is said to be down", "NodeName=w-0 State=IDLE+DRAIN\n   Reason=slurm-operator: Pod w-0 was cordoned [slurm@2026-11-20T12:00:00]", "exit 0", false, true},
		{"an administrator's drain stays", "NodeName=w-0 State=MIXED+DRAIN\n   Reason=bad disk [root@2026-11-20T12:00:00]", "exit 0", false, false},
		{"an administrator's drain without a reason stays", "NodeName=w-0 State=IDLE+DRAIN+DYNAMIC_NORM ThreadsPerCore=1", "exit 0", false, false},
		{"Slurm's own reason stays", "NodeName=w-0 State=DOWN*\n   Reason=Not responding [slurm@2026-11-20T12:00:00]", "exit 0", false, false},
		{"a slurmctld that does not answer holds up nothing, and nothing is changed", "", "exit 1", false, false},
		{"an empty answer changes nothing", "", "exit 0", false, false},
		{"a slow answer holds up nothing, and nothing is changed", idle, "sleep 60", false, false},
		{"the beginning of an answer changes nothing", "NodeName=w-0 Arch=x86_64", "exit 0", false, false},
		{"what came before an error changes nothing", idle, "exit 1", false, false},
		{"where Slurm powers workers an idle node is said to be down, too", idle, "exit 0", true, true},
		{"a node that Slurm wants powered down when its jobs have ended is said to be down", "NodeName=w-0 State=MIXED+POWER_DOWN", "exit 0", true, true},
		{"a node that is powered down stays so", "NodeName=w-0 State=IDLE+POWERED_DOWN+DYNAMIC_NORM", "exit 0", true, false},
		{"a node that powers down stays so, whatever we said of it", "NodeName=w-0 State=IDLE+DRAIN+POWERING_DOWN\n   Reason=slurm-operator: x", "exit 0", true, false},
		{"a node that Slurm wants back stays so", "NodeName=w-0 State=ALLOCATED*+NOT_RESPONDING+POWERING_UP", "exit 0", true, false},
		{"the node of this pod is said to be down", "NodeName=w-0 NodeAddr=10.0.0.7 NodeHostName=w-0\n   State=IDLE+DYNAMIC_NORM", "exit 0", false, true},
		{"the node of this pod is said to be down by its other address, too", "NodeName=w-0 NodeAddr=fd00::7 NodeHostName=w-0\n   State=IDLE+DYNAMIC_NORM", "exit 0", false, true},
		{"a record without an address counts as that of this pod", "NodeName=w-0 NodeAddr=ip-10-0-0-1.ec2.internal NodeHostName=w-0\n   State=IDLE+CLOUD", "exit 0", false, true},
		{"the worker that took the place of this pod elsewhere stays as it is", "NodeName=w-0 NodeAddr=10.0.0.70 NodeHostName=w-0\n   State=MIXED+DYNAMIC_NORM", "exit 0", false, false},
		{"where Slurm powers workers, the worker that took the place of this pod elsewhere stays as it is", "NodeName=w-0 NodeAddr=10.0.0.70 NodeHostName=w-0\n   State=MIXED+DYNAMIC_NORM", "exit 0", true, false},
		{"a node that Slurm does not have stays so", "Node w-0 not found", "exit 1", false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			script := "#!/bin/sh\ncase $1 in\nshow) cat " + dir + "/shown; " + tt.ends + " ;;\nupdate) echo \"$@\" >>" + dir + "/updates; " + tt.ends + " ;;\nesac\n"
			for name, content := range map[string]string{"shown": tt.shown, "scontrol": script, "hostname": "#!/bin/sh\n[ \"$1\" = -I ] && echo '10.0.0.7 fd00::7 '\n"} {
				executable.Write(t, filepath.Join(dir, name), content)
			}
			command := commands[tt.saves]
			run := exec.CommandContext(t.Context(), command[0], command[1:]...)
			run.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "POD_NODE_NAME=ip-10-0-0-1.ec2.internal"}
			if output, err := run.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			updates, _ := os.ReadFile(filepath.Join(dir, "updates"))
			if got := strings.Contains(string(updates), "update nodename=ip-10-0-0-1.ec2.internal state=down reason=slurm-operator: Pod is terminating"); got != tt.down {
				t.Errorf("the node was set down: %t, want %t; %s", got, tt.down, updates)
			}
		})
	}
}
