// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck"
	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck/machine"
	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck/runner"
)

// node is a container and a jail in a directory, and a slurmctld that is a program of the shell.
type node struct {
	t           *testing.T
	root        string
	environment map[string]string
	log, print  strings.Builder
}

// newNode has a slurmctld to which the node is in these states, with this reason.
func newNode(t *testing.T, states, reason string) *node {
	t.Helper()
	n := &node{t: t, root: t.TempDir()}
	n.environment = map[string]string{"SLURMD_NODENAME": "worker-0", "PATH": n.path("bin") + ":/usr/bin:/bin"}
	n.write("mnt/jail/etc/x", "")
	n.write("bin/scontrol", "#!/bin/sh\necho \"$*\" >>"+n.path("calls")+"\necho '   State="+states+"'\necho '   Reason="+reason+"'\n")
	if err := os.Chmod(n.path("bin/scontrol"), 0o700); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *node) path(name string) string { return filepath.Join(n.root, name) }

func (n *node) write(name, content string) {
	n.t.Helper()
	if err := os.MkdirAll(filepath.Dir(n.path(name)), 0o750); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(n.path(name), []byte(content), 0o600); err != nil {
		n.t.Fatal(err)
	}
}

// read returns the content of a file, empty when there is none.
func (n *node) read(name string) string {
	n.t.Helper()
	content, err := os.ReadFile(n.path(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		n.t.Fatal(err)
	}
	return string(content)
}

// run runs a configuration and returns the exit code.
func (n *node) run(ctx context.Context, in passivecheck.Context, job *passivecheck.Job, config string) int {
	n.t.Helper()
	n.write("config/checks.json", config)
	checks, err := runner.Load(n.path("config/checks.json"))
	if err != nil {
		n.t.Fatal(err)
	}
	m, err := machine.Open(machine.Options{Root: n.root, Jail: "/mnt/jail", Environment: n.environment, Context: in, Job: job, Now: time.Now()})
	if err != nil {
		n.t.Fatal(err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			n.t.Error(err)
		}
	}()
	r := &runner.Runner{Machine: m, Checks: checks, ConfigDir: n.path("config"), OutputsDir: "/opt/soperator-outputs", Print: &n.print, Log: slog.New(slog.NewTextHandler(&n.log, nil))}
	return r.Run(ctx)
}

// output returns what a check of a context wrote.
func (n *node) output(check string) string {
	return n.read("mnt/jail/opt/soperator-outputs/slurm_scripts/worker-0." + check + ".out")
}

func job() *passivecheck.Job { return &passivecheck.Job{ID: 12} }

func TestAFailureStopsTheJob(t *testing.T) {
	const config = `[
		{"name": "first", "command": "echo said; echo wrong >&2; pwd"},
		{"name": "second", "command": "echo 'disk is full' >&3; exit 3", "on_fail": "drain", "reason_base": "[user_problem] $name"},
		{"name": "third", "command": "touch ran"}]`
	for _, test := range []struct {
		context passivecheck.Context
		code    int
		print   string
	}{
		{passivecheck.Prolog, 1, "print A check failed on worker-0: [user_problem] second: disk is full [prolog]\n"},
		{passivecheck.Epilog, 0, ""},
		{passivecheck.HealthProgram, 0, ""},
	} {
		t.Run(string(test.context), func(t *testing.T) {
			n := newNode(t, "IDLE", "")
			if code := n.run(t.Context(), test.context, job(), config); code != test.code || n.print.String() != test.print {
				t.Errorf("exit code %d, printed %q", code, n.print.String())
			}
			want := "show node worker-0\nupdate nodename=worker-0 state=drain reason=[user_problem] second: disk is full [" + string(test.context) + "]\n"
			if got := n.read("calls"); got != want {
				t.Errorf("slurmctld got %q, want %q", got, want)
			}
			if got, want := n.output("first."+string(test.context)), "said\nwrong\n"+n.path("config")+"\n"; got != want {
				t.Errorf("the output is %q, want %q", got, want)
			}
			if _, err := os.Stat(n.path("config/ran")); err == nil {
				t.Error("the third check ran")
			}
		})
	}
}

func TestHealthCheckProgramUndrainsWhatACheckDrained(t *testing.T) {
	const config = `[{"name": "disk", "command": "true", "on_fail": "drain", "on_ok": "undrain"}]`
	for _, test := range []struct{ name, states, reason, want string }{
		{"the check's own drain", "IDLE+DRAIN", "[node_problem] disk: full [prolog] [root@2026-11-25T00:00:00]", "show node worker-0\nupdate nodename=worker-0 state=resume\n"},
		{"a drain of a person", "IDLE+DRAIN", "mine [root@2026-11-25T00:00:00]", "show node worker-0\n"},
		{"no drain", "IDLE", "", "show node worker-0\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := newNode(t, test.states, test.reason)
			if code := n.run(t.Context(), passivecheck.HealthProgram, nil, config); code != 0 || n.read("calls") != test.want {
				t.Errorf("exit code %d, slurmctld got %q", code, n.read("calls"))
			}
		})
	}
}

func TestTheCommentOfAJobSkipsAllChecks(t *testing.T) {
	n := newNode(t, "IDLE", "")
	skips := job()
	skips.Comment = "skip_checks"
	if code := n.run(t.Context(), passivecheck.Prolog, skips, `[{"command": "exit 1"}]`); code != 0 || !strings.Contains(n.log.String(), "Skipped all checks") {
		t.Errorf("exit code %d, log %s", code, n.log.String())
	}
}

func TestAnInternalErrorLetsTheJobRunAndIsTold(t *testing.T) {
	for _, test := range []struct{ name, check, scontrol, want string }{
		{"a command that is not there", `{"name": "a", "command": "/no/such/check"}`, "", "/no/such/check"},
		{"a command that may not be run", `{"name": "a", "command": "/etc/passwd"}`, "", "exit status 126"},
		{"a state that slurmctld does not say", `{"name": "a", "node_states": ["drain"], "command": "exit 1"}`, "exit 1", "the state of the node is not known"},
		{"a variable that slurmctld does not say", `{"name": "a", "need_env": ["CHECKS_NODE_REASON"], "command": "exit 1"}`, "exit 1", "computing CHECKS_NODE_REASON"},
		{"a built-in check that cannot do its work", `{"name": "a", "builtin": "drop_page_cache"}`, "", "drop_caches"},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := newNode(t, "IDLE", "")
			if test.scontrol != "" {
				n.write("bin/scontrol", "#!/bin/sh\n"+test.scontrol+"\n")
			}
			code := n.run(t.Context(), passivecheck.Prolog, job(), "["+test.check+`, {"name": "next", "command": "touch ran"}]`)
			if code != 0 || !strings.Contains(n.log.String(), test.want) || !strings.Contains(n.log.String(), "level=ERROR") {
				t.Errorf("exit code %d, log %s", code, n.log.String())
			}
			if got := n.read("run/check-runner/internal_errors.prom"); !strings.Contains(got, `{context="prolog",check="a"} 1`) {
				t.Errorf("counted %q", got)
			}
			if _, err := os.Stat(n.path("config/ran")); err != nil {
				t.Errorf("the next check did not run: %v", err)
			}
		})
	}
}

func TestANodeThatSlurmctldDoesNotHaveYetIsNoError(t *testing.T) {
	n := newNode(t, "IDLE", "")
	n.write("bin/scontrol", "#!/bin/sh\necho Node worker-0 not found; exit 1\n")
	n.run(t.Context(), passivecheck.HealthProgram, nil, `[{"name": "a", "on_ok": "undrain"}, {"name": "b", "node_states": ["drain"]}]`)
	if strings.Contains(n.log.String(), "level=ERROR") || strings.Count(n.log.String(), "does not have the node") != 2 || n.read("run/check-runner/internal_errors.prom") != "" {
		t.Errorf("the log is %s", n.log.String())
	}
}

func TestTheWorkerThatTookThePlaceOfThisOneIsNotDrained(t *testing.T) {
	for _, test := range []struct {
		name, address string
		drained       bool
	}{
		{"this machine", "127.0.0.1", true},
		{"this machine, with the address in brackets", "[::ffff:127.0.0.1]", true},
		{"an address that slurmctld does not know", "worker-0", true},
		{"another machine under the name of this one", "192.0.2.1", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := newNode(t, "IDLE", "")
			n.write("bin/scontrol", "#!/bin/sh\necho \"$*\" >>"+n.path("calls")+"\necho '   NodeAddr="+test.address+" NodeHostName=worker-0'\necho '   State=IDLE'\n")
			n.run(t.Context(), passivecheck.HealthProgram, nil, `[{"name": "a", "command": "exit 1", "on_fail": "drain"}]`)
			if got := strings.Contains(n.read("calls"), "state=drain"); got != test.drained {
				t.Errorf("drained: %t, log %s", got, n.log.String())
			}
			if told := strings.Contains(n.log.String(), "slurmctld knows it at 192.0.2.1: another machine is that node now"); told == test.drained {
				t.Errorf("the log is %s", n.log.String())
			}
		})
	}
}

func TestAFailureCountsAlthoughTheNodeCannotBeDrained(t *testing.T) {
	n := newNode(t, "IDLE", "")
	n.write("bin/scontrol", "#!/bin/sh\nexit 1\n")
	code := n.run(t.Context(), passivecheck.Prolog, job(), `[{"name": "a", "command": "exit 1", "on_fail": "drain"}]`)
	if code != 1 || !strings.Contains(n.read("run/check-runner/internal_errors.prom"), `check="a"} 1`) {
		t.Errorf("exit code %d, log %s", code, n.log.String())
	}
}

func TestAnInterruptedCheckHasFoundNothing(t *testing.T) {
	n := newNode(t, "IDLE", "")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if code := n.run(ctx, passivecheck.Prolog, job(), `[{"name": "a", "command": "exec sleep 60", "on_fail": "drain"}]`); code != 0 || n.read("calls") != "" {
		t.Errorf("exit code %d, slurmctld got %q", code, n.read("calls"))
	}
}

func TestVariablesAreComputedForWhomNeedsThem(t *testing.T) {
	n := newNode(t, "IDLE+DRAIN+DYNAMIC_NORM", "why [root@2026-11-25T00:00:00]")
	n.run(t.Context(), passivecheck.HealthProgram, nil, `[{"name": "without", "command": "env"}]`)
	if got := n.output("without.hc_program"); n.read("calls") != "" || strings.Contains(got, "CHECKS_NODE") || !strings.Contains(got, "CHECKS_CONTEXT=hc_program\n") {
		t.Errorf("slurmctld got %q, the check %q", n.read("calls"), got)
	}
	n.run(t.Context(), passivecheck.HealthProgram, nil, `[{"name": "with", "command": "env",
		"need_env": ["CHECKS_PLATFORM_TAG", "CHECKS_PLATFORM_TAGS", "CHECKS_NODE_STATE_FLAGS", "CHECKS_NODE_REASON", "CHECKS_NODE_COMMENT", "CHECKS_NODE_REAL_MEM_BYTES"]}]`)
	for _, want := range []string{"PLATFORM_TAG=CPU", "PLATFORM_TAGS=any,CPU", "NODE_STATE_FLAGS=DRAIN,DYNAMIC_NORM", "NODE_REASON=why", "NODE_COMMENT=", "NODE_REAL_MEM_BYTES=0"} {
		if !strings.Contains(n.output("with.hc_program"), "CHECKS_"+want+"\n") {
			t.Errorf("%s is missing in %s", want, n.output("with.hc_program"))
		}
	}
	if n.read("calls") != "show node worker-0\n" {
		t.Errorf("slurmctld got %q", n.read("calls"))
	}
}

func TestWhatIsUnavailableIsToldOnce(t *testing.T) {
	n := newNode(t, "IDLE", "")
	for range 3 {
		n.run(t.Context(), passivecheck.Epilog, job(), `[{"name": "enroot", "builtin": "cleanup_enroot"}]`)
	}
	if got := strings.Count(n.log.String(), "enroot is not installed"); got != 1 {
		t.Errorf("told %d times: %s", got, n.log.String())
	}
	if got := n.output("enroot.epilog"); got != "skipped: enroot is not installed\n" {
		t.Errorf("the output is %q", got)
	}
}

func TestALinkInTheOutputsIsNotFollowed(t *testing.T) {
	n := newNode(t, "IDLE", "")
	n.write("mnt/jail/etc/shadow", "precious")
	n.write("mnt/jail/opt/soperator-outputs/slurm_scripts/x", "")
	if err := os.Symlink("/etc/shadow", n.path("mnt/jail/opt/soperator-outputs/slurm_scripts/worker-0.a.prolog.out")); err != nil {
		t.Fatal(err)
	}
	n.run(t.Context(), passivecheck.Prolog, job(), `[{"name": "a", "command": "echo b"}]`)
	if n.read("mnt/jail/etc/shadow") != "precious" || n.output("a.prolog") != "b\n" {
		t.Errorf("%q, %q", n.read("mnt/jail/etc/shadow"), n.output("a.prolog"))
	}
}

func TestAProcessThatIsLeftBehindHoldsNobodyUp(t *testing.T) {
	n := newNode(t, "IDLE", "")
	begun := time.Now()
	code := n.run(t.Context(), passivecheck.Prolog, job(), `[{"name": "a", "command": "sleep 60 & echo $! >`+n.path("pid")+`; echo it >&3; exit 1"}]`)
	if code != 1 || time.Since(begun) > 30*time.Second || !strings.Contains(n.print.String(), "a: it [prolog]") {
		t.Errorf("exit code %d after %s, printed %q", code, time.Since(begun), n.print.String())
	}
	pid, err := strconv.Atoi(strings.TrimSpace(n.read("pid")))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the process did not outlive its check: %v", err)
	}
}

func TestCommandsOfTheJailHaveItAsTheirRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("chroot needs root")
	}
	n := newNode(t, "IDLE", "")
	const config = `[{"name": "a", "command": "echo in $PWD; echo /etc/*; echo found it >&3; exit 1", "run_in_jail": true}]`
	if code := n.run(t.Context(), passivecheck.Prolog, job(), config); code != 0 || !strings.Contains(n.log.String(), "fork/exec /bin/bash: no such file or directory") {
		t.Errorf("without a bash in the jail: exit code %d, log %s", code, n.log.String())
	}
	n.installBash("mnt/jail")
	if code := n.run(t.Context(), passivecheck.Prolog, job(), config); code != 1 || n.output("a.prolog") != "in /\n/etc/x\n" || !strings.Contains(n.print.String(), "a: found it [prolog]") {
		t.Errorf("exit code %d, output %q, printed %q, log %s", code, n.output("a.prolog"), n.print.String(), n.log.String())
	}
}

// installBash copies bash into a root directory, with the libraries that it loads.
func (n *node) installBash(root string) {
	n.t.Helper()
	loads, err := exec.CommandContext(n.t.Context(), "ldd", "/bin/bash").Output()
	if err != nil {
		n.t.Fatal(err)
	}
	for _, file := range append(regexp.MustCompile(`/\S+`).FindAllString(string(loads), -1), "/bin/bash") {
		content, err := os.ReadFile(file)
		if err != nil {
			n.t.Fatal(err)
		}
		n.write(root+file, string(content))
		if err := os.Chmod(n.path(root+file), 0o700); err != nil {
			n.t.Fatal(err)
		}
	}
}
