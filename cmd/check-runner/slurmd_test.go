// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/test/realslurm"
)

// programs are the checks of a real slurmd, with a jail at /mnt/jail.
const programs = "SelectTypeParameters=CR_Core_Memory\nProlog=/mnt/checks/prolog.sh\nEpilog=/mnt/checks/epilog.sh\n" +
	"HealthCheckProgram=/mnt/checks/hc_program.sh\nHealthCheckInterval=1\nHealthCheckNodeState=ANY"

// config has a check for each thing that only a real Slurm shows.
const config = `[
	{"name": "tmpfs", "builtin": "job_tmpfs_recreate", "contexts": ["prolog"]},
	{"name": "delete", "builtin": "job_tmpfs_delete", "contexts": ["epilog"]},
	{"name": "env", "command": "env; id -u; pwd", "contexts": ["prolog"], "need_env": ["CHECKS_JOB_ALLOC_MEM_BYTES", "CHECKS_NODE_REAL_MEM_BYTES", "CHECKS_NODE_STATE_FLAGS"]},
	{"name": "gpu", "command": "! test -e /mnt/broken", "contexts": ["prolog"], "on_fail": "drain"},
	{"name": "quiet", "command": "! test -e /mnt/quiet", "contexts": ["prolog"]},
	{"name": "disk", "command": "echo 'it is full' >&3; ! test -e /mnt/full", "contexts": ["prolog", "hc_program"], "on_fail": "drain", "on_ok": "undrain"}
]`

// TestSlurmdRunsTheChecks has real daemons of both releases call the program.
func TestSlurmdRunsTheChecks(t *testing.T) {
	for _, root := range realslurm.Roots(t) {
		t.Run(root.Release, func(t *testing.T) {
			t.Parallel()
			runsTheChecks(t, root)
		})
	}
}

func runsTheChecks(t *testing.T, root realslurm.Root) {
	box := realslurm.Open(t, root, programs)
	for _, dir := range []string{"checks", "jail/mnt/memory"} {
		if err := os.MkdirAll(box.Path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", box.Path("checks/check-runner"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	for _, context := range []string{"prolog", "epilog", "hc_program"} {
		script := "#!/bin/sh\nexport CHECKS_CONTEXT=" + context + " CHECKS_CONFIG=/mnt/checks/checks.json\nexec /mnt/checks/check-runner\n"
		if err := os.WriteFile(box.Path("checks/"+context+".sh"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(box.Path("checks/checks.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	box.StartController()
	box.StartSlurmd("w-0", 2, "RealMemory=1000")
	node := func() string { out, _ := box.Try("scontrol", "show", "node", "w-0"); return out }
	eventually(t, "the node is idle", node, "State=IDLE+DYNAMIC_NORM ")

	output := func(check string) string {
		content, _ := os.ReadFile(box.Path("jail/opt/soperator-outputs/slurm_scripts/w-0." + check + ".out")) // it may not be there yet
		return string(content)
	}
	submit := func(args ...string) string {
		args = append([]string{"setpriv", "--reuid=2000", "--regid=2000", "--clear-groups", "sbatch", "--parsable", "--output=/dev/null", "--mem=100", "--wrap", "test -d /mnt/jail/mnt/memory/job_$SLURM_JOB_ID"}, args...)
		return box.Run(args...)
	}
	id := submit("--comment=a b")
	eventually(t, "the job has ended", func() string { return box.Run("scontrol", "show", "job", id) }, "JobState=COMPLETED")
	for _, want := range []string{
		"SLURM_JOB_COMMENT=a b\n", "SLURM_JOB_UID=2000\n", "SLURMD_NODENAME=w-0\n", "CHECKS_JOB_ALLOC_MEM_BYTES=104857600\n",
		"CHECKS_NODE_REAL_MEM_BYTES=1048576000\n", "CHECKS_NODE_STATE_FLAGS=DYNAMIC_NORM\n", "CHECKS_CONTEXT=prolog\n", "PATH=", "\n0\n/mnt/checks\n",
	} {
		if !strings.Contains(output("env.prolog"), want) {
			t.Errorf("%q is missing in\n%s", want, output("env.prolog"))
		}
	}
	eventually(t, "the directory of the job is removed", func() string { return output("delete.epilog") }, "passed: /mnt/memory/job_"+id+" was removed")
	eventually(t, "HealthCheckProgram runs", func() string { return output("check_runner.hc_program") }, "check=disk result=passed")

	drains(t, box, node, submit)
	requeues(t, box, node, submit)
	for _, context := range []string{"prolog", "epilog", "hc_program"} {
		if log := output("check_runner." + context); strings.Contains(log, "level=ERROR") {
			t.Errorf("an internal error: %s", log)
		}
	}
}

// drains has a check fail, and succeed again.
func drains(t *testing.T, box *realslurm.Box, node func() string, submit func(...string) string) {
	full := box.Path("full")
	if err := os.WriteFile(full, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node is drained", node, "Reason=[node_problem] disk: it is full [hc_program] [root@")
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node is undrained", node, "State=IDLE+DYNAMIC_NORM ")
	// A person's drain stays, whatever the check finds.
	box.Run("scontrol", "update", "nodename=w-0", "state=drain", "reason=by hand")
	runs := func() int {
		log, _ := os.ReadFile(box.Path("jail/opt/soperator-outputs/slurm_scripts/w-0.check_runner.hc_program.out")) // it is there since the first run
		return strings.Count(string(log), "check=disk result=passed")
	}
	before := runs()
	eventually(t, "HealthCheckProgram runs three times", func() string { return strings.Repeat("run ", runs()-before) }, "run run run ")
	if out := node(); !strings.Contains(out, "+DRAIN") || !strings.Contains(out, "Reason=by hand [") {
		t.Errorf("the drain of a person is changed: %s", out)
	}
	box.Run("scontrol", "update", "nodename=w-0", "state=resume")
	id := submit("--comment=skip_checks")
	eventually(t, "checks are skipped", func() string {
		log, _ := os.ReadFile(box.Path("jail/opt/soperator-outputs/slurm_scripts/w-0.check_runner.prolog.out")) // it is there since the first job
		return string(log)
	}, `msg="Skipped all checks, as the comment of the job says" job=`+id)
	// Its directory is made by a check.
	eventually(t, "the job without checks has failed", func() string { return box.Run("scontrol", "show", "job", id) }, "JobState=FAILED")
}

// requeues has a check fail before a job. Slurm drains the node by itself, and keeps the reason of the check where there is one.
func requeues(t *testing.T, box *realslurm.Box, node func() string, submit func(...string) string) {
	for file, reason := range map[string]string{"broken": "[node_problem] gpu: exit status 1 [prolog] [", "quiet": "Prolog error ["} {
		if err := os.WriteFile(box.Path(file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		id := submit()
		eventually(t, "the node is drained", node, "Reason="+reason)
		eventually(t, "the job waits again", func() string { return box.Run("scontrol", "show", "job", id) }, "JobState=PENDING")
		box.Run("scancel", id)
		if err := os.Remove(box.Path(file)); err != nil {
			t.Fatal(err)
		}
		box.Run("scontrol", "update", "nodename=w-0", "state=resume")
		eventually(t, "the node is idle", node, "State=IDLE+DYNAMIC_NORM ")
	}
}

// eventually waits for a word in what ask returns.
func eventually(t *testing.T, what string, ask func() string, word string) {
	t.Helper()
	deadline, tick := time.NewTimer(90*time.Second), time.NewTicker(100*time.Millisecond)
	defer deadline.Stop()
	defer tick.Stop()
	for said := ask(); !strings.Contains(said, word); said = ask() {
		select {
		case <-deadline.C:
			t.Fatalf("%s: still not so, %q is not in\n%s", what, word, said)
		case <-tick.C:
		}
	}
}
