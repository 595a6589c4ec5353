// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck/runner"
	"github.com/coxswain-hpc/coxswain/internal/testing/executable"
)

// worker is the container of a worker, in a directory.
type worker struct {
	t              testing.TB
	root           string
	environment    map[string]string
	stdout, stderr strings.Builder
}

func newWorker(t testing.TB) *worker {
	t.Helper()
	w := &worker{t: t, root: t.TempDir()}
	w.environment = map[string]string{
		"SLURMD_NODENAME": "worker-0", "SLURM_JOB_ID": "12", "PATH": w.path("bin") + ":/usr/bin:/bin",
		// Only root can give a directory to another user.
		"SLURM_JOB_UID": strconv.Itoa(os.Getuid()), "SLURM_JOB_GID": strconv.Itoa(os.Getgid()),
	}
	w.write("mnt/jail/etc/x", "")
	for _, program := range []string{"scontrol", "squeue", "nvidia-smi"} {
		w.write("bin/"+program, "#!/bin/sh\necho \""+program+" $*\" >>"+w.path("calls")+"\n")
	}
	return w
}

func (w *worker) path(name string) string { return filepath.Join(w.root, name) }

func (w *worker) write(name, content string) {
	w.t.Helper()
	executable.Write(w.t, w.path(name), content)
}

// read returns the content of a file, empty when there is none.
func (w *worker) read(name string) string {
	w.t.Helper()
	content, err := os.ReadFile(w.path(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatal(err)
	}
	return string(content)
}

// call runs the program under a name with arguments.
func (w *worker) call(name string, args ...string) int {
	w.stdout.Reset()
	w.stderr.Reset()
	args = append([]string{"--root", w.root}, args...)
	return run(w.t.Context(), w.invocation(name, args...))
}

func (w *worker) invocation(name string, args ...string) invocation {
	return invocation{Name: name, Args: args, Environment: w.environment, Now: time.Now(), Stdout: &w.stdout, Stderr: &w.stderr, Ask: askJail, Patience: jailPatience}
}

// TestAJailThatHangsTakesNoNodeOut has a file system of the jail that does not answer any more while a check runs, which would fail.
func TestAJailThatHangsTakesNoNodeOut(t *testing.T) {
	w := newWorker(t)
	w.write("opt/slurm_scripts/checks.json", `[{"name": "a", "command": "sleep 20; exit 1", "on_fail": "drain"}]`)
	in := w.invocation("check-runner", "--root", w.root, "prolog")
	asked := make(chan struct{}, 100)
	in.Patience = 200 * time.Millisecond
	in.Ask = func(o options) error {
		if asked <- struct{}{}; len(asked) > 1 {
			<-t.Context().Done()
		}
		return askJail(o)
	}
	if code := run(t.Context(), in); code != 0 || !strings.Contains(w.stderr.String(), "does not respond") || w.stdout.String() != "" {
		t.Errorf("exit code %d, it says %q and %q", code, w.stdout.String(), w.stderr.String())
	}
	if got := w.read("run/check-runner/" + runner.CounterFile); !strings.Contains(got, `{context="prolog",check=""} 1`) {
		t.Errorf("the counters are %q", got)
	}
	if calls := w.read("calls"); calls != "" {
		t.Errorf("slurmctld was told %q", calls)
	}
}

const outputs = "mnt/jail/opt/soperator-outputs/slurm_scripts/worker-0."

func TestTheContextIsGivenInThreeWays(t *testing.T) {
	const config = `[{"name": "p", "contexts": ["prolog"], "command": "exit 1"}, {"name": "h", "contexts": ["hc_program"]}]`
	for _, test := range []struct {
		name, program, variable string
		args                    []string
		code                    int
		output                  string
	}{
		{"by an argument", "/usr/local/bin/check-runner", "epilog", []string{"prolog"}, 1, "check_runner.prolog"},
		{"by CHECKS_CONTEXT", "/usr/local/bin/check-runner", "prolog", nil, 1, "check_runner.prolog"},
		{"by the name of the program", "/usr/local/lib/coxswain/checks/hc_program.sh", "", nil, 0, "h.hc_program"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorker(t)
			w.write("opt/slurm_scripts/checks.json", config)
			if test.variable != "" {
				w.environment["CHECKS_CONTEXT"] = test.variable
			}
			if code := w.call(test.program, test.args...); code != test.code {
				t.Errorf("exit code %d: %s", code, w.stderr.String())
			}
			if _, err := os.Stat(w.path(outputs + test.output + ".out")); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWhereTheConfigurationIs(t *testing.T) {
	check := func(name string) string { return `{"name": "` + name + `"}` }
	for _, test := range []struct {
		name  string
		files []string
		want  string
	}{
		{"the configuration is that of the image", []string{"usr/local/lib/coxswain/checks/checks.json"}, "usr/local/lib/coxswain/checks/checks.json"},
		{"the configuration is a directory of the user", []string{"usr/local/lib/coxswain/checks/checks.json", "opt/slurm_scripts/a.sh.json"}, "opt/slurm_scripts/a.sh.json"},
		{"the configuration is a list of the user", []string{"opt/slurm_scripts/a.sh.json", "opt/slurm_scripts/checks.json"}, "opt/slurm_scripts/checks.json"},
		{"the configuration is that of CHECKS_CONFIG", []string{"mine.json", "opt/slurm_scripts/checks.json"}, "mine.json"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorker(t)
			for _, file := range test.files {
				w.write(file, check(strings.ReplaceAll(file, "/", "_")))
			}
			if test.files[0] == "mine.json" {
				w.environment["CHECKS_CONFIG"] = w.path("mine.json")
			}
			w.environment["CHECKS_RUNNER_OUTPUT"] = "/log"
			if code := w.call("check-runner", "prolog"); code != 0 || !strings.Contains(w.read("log"), "check="+strings.ReplaceAll(test.want, "/", "_")+" ") {
				t.Errorf("exit code %d, log %s", code, w.read("log"))
			}
		})
	}
}

func TestCommandsKnowWhereThingsAre(t *testing.T) {
	w := newWorker(t)
	w.write("opt/slurm_scripts/checks.json", `[{"name": "env", "command": "env; pwd"}]`)
	w.call("check-runner", "prolog")
	for _, want := range []string{
		"CHECKS_CONFIG=" + w.path("opt/slurm_scripts/checks.json"), "CHECKS_OUTPUTS_BASE_DIR=/opt/soperator-outputs", "CHECKS_CONTEXT=prolog",
		"SLURM_JOB_ID=12", w.path("opt/slurm_scripts"),
	} {
		if got := w.read(outputs + "env.prolog.out"); !strings.Contains("\n"+got, "\n"+want+"\n") {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
}

func TestMistakesLetTheJobRunAndAreTold(t *testing.T) {
	for _, test := range []struct {
		name, config, job, want string
		args                    []string
	}{
		{"no configuration", "", "12", "reading the configuration of checks", []string{"prolog"}},
		{"a mistake in the configuration", `[{"on_fail": "?"}]`, "12", "on_fail", []string{"prolog"}},
		{"no context", "[]", "12", "unknown context", nil},
		{"a flag that is not known", "[]", "12", "flag provided but not defined", []string{"--x", "prolog"}},
		{"two contexts", "[]", "12", "unexpected argument", []string{"prolog", "epilog"}},
		{"a job that is none", "[]", "x", "SLURM_JOB_ID", []string{"prolog"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorker(t)
			w.environment["SLURM_JOB_ID"], w.environment["CHECKS_RUNNER_OUTPUT"] = test.job, "/log"
			if test.config != "" {
				w.write("opt/slurm_scripts/checks.json", test.config)
			}
			if code := w.call("check-runner", test.args...); code != 0 || !strings.Contains(w.read("log"), test.want) {
				t.Errorf("exit code %d, log %q", code, w.read("log"))
			}
			if got := w.read(filepath.Join(runner.Dir, runner.CounterFile)); !strings.Contains(got, `check=""} 1`) {
				t.Errorf("counted %q", got)
			}
		})
	}
}

func TestAJailThatCannotBeLookedAtIsToldAndCounted(t *testing.T) {
	w := newWorker(t)
	if err := os.RemoveAll(w.path("mnt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("mnt", w.path("mnt")); err != nil { // a circle, as an error of a file system
		t.Fatal(err)
	}
	if code := w.call("check-runner", "prolog"); code != 0 || !strings.Contains(w.stderr.String(), "looking for the jail") ||
		!strings.Contains(w.read(filepath.Join(runner.Dir, runner.CounterFile)), `{context="prolog",check=""} 1`) {
		t.Errorf("exit code %d: %s", code, w.stderr.String())
	}
}

func TestValidate(t *testing.T) {
	w := newWorker(t)
	w.write("checks.json", `[{"name": "a"}, {"name": "b", "builtin": "boot_disk_full"}]`)
	if code := w.call("check-runner", "--config", w.path("checks.json"), "validate"); code != 0 || w.stdout.String() != w.path("checks.json")+": 2 checks, no mistakes\n" {
		t.Errorf("exit code %d: %s%s", code, w.stdout.String(), w.stderr.String())
	}
	w.write("checks.json", `[{"name": "b", "builtin": "boot_disk"}]`)
	if code := w.call("check-runner", "--config", w.path("checks.json"), "validate"); code != 1 || !strings.Contains(w.stderr.String(), `there is no built-in check "boot_disk"`) {
		t.Errorf("exit code %d: %s", code, w.stderr.String())
	}
}

func TestHelp(t *testing.T) {
	w := newWorker(t)
	if code := w.call("check-runner", "--help"); code != 0 || w.read("calls") != "" {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"The Coxswain check-runner ", "hc_program", "-config path", "boot_disk_full"} {
		if !strings.Contains(w.stderr.String(), want) {
			t.Errorf("the help lacks %s:\n%s", want, w.stderr.String())
		}
	}
}

// imageConfig is the configuration of the image.
const imageConfig = "../../images/slurmd/checks.json"

func TestTheConfigurationOfTheImageAsksNobodyAtAJob(t *testing.T) {
	config, err := os.ReadFile(imageConfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"prolog", "epilog"} {
		w := newWorker(t)
		// How full the disk of this machine is may not matter.
		w.write("checks.json", strings.Replace(string(config), `"builtin": "boot_disk_full"`, `"command": "true"`, 1))
		w.write("mnt/jail/mnt/memory/x", "")
		w.write("proc/sys/vm/drop_caches", "")
		if err := os.Remove(w.path("bin/nvidia-smi")); err != nil {
			t.Fatal(err)
		}
		w.environment["CHECKS_RUNNER_OUTPUT"] = "/log"
		if code := w.call("check-runner", "--config", w.path("checks.json"), command); code != 0 || strings.Contains(w.read("log"), "ERROR") || w.read("calls") != "" {
			t.Errorf("exit code %d, called %q, log %s", code, w.read("calls"), w.read("log"))
		}
		if !strings.Contains(w.read("log"), "check=job_tmpfs_") {
			t.Errorf("the checks did not run: %s", w.read("log"))
		}
	}
}

// twelve returns a prolog of twelve built-in checks on a node that has what they look at.
func twelve(t testing.TB) *worker {
	t.Helper()
	w := newWorker(t)
	var entries []string
	for _, name := range []string{
		"job_tmpfs_recreate", "job_tmpfs_delete_leftover", "alloc_mem_used", "alloc_gpus_busy", "drop_posix_shmem", "cleanup_enroot",
		"map_job_dcgm", "unmap_job_dcgm", "nvme_raid_health", "gpu_health_check", "idle_mem_used", "job_tmpfs_delete",
	} {
		entries = append(entries, `{"name": "`+name+`", "builtin": "`+name+`", "on_fail": "drain", "on_ok": "undrain"}`)
	}
	w.write("checks.json", "["+strings.Join(entries, ",\n")+"]")
	w.write("mnt/jail/mnt/memory/job_11/x", "")
	w.write("mnt/jail/etc/enroot/enroot.conf", "ENROOT_DATA_PATH /run/enroot/$UID\n")
	w.write("proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 7000000 kB\n")
	w.write("proc/mdstat", "md0 : active raid0 nvme0n1[0] nvme1n1[1]\n      100 blocks 512k chunks\n")
	w.write("proc/mounts", "/dev/md0 /mnt/jail/mnt/memory ext4 rw 0 0\n")
	w.write("sys/fs/cgroup/system.slice/slurmstepd.scope/job_12/memory.max", "1000000000\n")
	return w
}

func TestAPrologOfTwelveChecksAsksSlurmctldNothing(t *testing.T) {
	w := twelve(t)
	w.environment["CHECKS_RUNNER_OUTPUT"] = "/log"
	if code := w.call("check-runner", "--config", w.path("checks.json"), "prolog"); code != 0 || strings.Contains(w.read("log"), "ERROR") {
		t.Errorf("exit code %d, log %s", code, w.read("log"))
	}
	if got := strings.Count(w.read("log"), "Ran a check"); got != 12 {
		t.Errorf("%d checks ran: %s", got, w.read("log"))
	}
	if got := w.read("calls"); strings.Contains(got, "scontrol") || strings.Contains(got, "squeue") {
		t.Errorf("called %q", got)
	}
}

// BenchmarkPrologOfTwelveChecks starts the program as slurmd does; one operation is a whole prolog.
func BenchmarkPrologOfTwelveChecks(b *testing.B) {
	w := twelve(b)
	program := w.path("check-runner")
	build := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, said)
	}
	environment := make([]string, 0, len(w.environment))
	for name, value := range w.environment {
		environment = append(environment, name+"="+value)
	}
	for b.Loop() {
		prolog := exec.CommandContext(b.Context(), program, "--root", w.root, "--config", w.path("checks.json"), "prolog")
		prolog.Env = environment
		if said, err := prolog.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, said)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "ms/prolog")
	if got := w.read("calls"); got != "" {
		b.Errorf("called %q", got)
	}
}
