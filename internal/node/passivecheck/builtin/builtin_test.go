// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck"
	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck/machine"
)

// world is a container and a jail in a directory, with programs that only record how they were called.
type world struct {
	t   *testing.T
	dir string
	// environment is the environment of slurmd's script.
	environment map[string]string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	w.environment = map[string]string{"SLURMD_NODENAME": "worker-0", "PATH": w.path("/bin") + ":/usr/bin:/bin"}
	w.mkdir("/mnt/jail")
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) mkdir(name string) {
	w.t.Helper()
	if err := os.MkdirAll(w.path(name), 0o755); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) write(name, content string) {
	w.t.Helper()
	w.mkdir(filepath.Dir(name))
	if err := os.WriteFile(w.path(name), []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) read(name string) string {
	w.t.Helper()
	content, err := os.ReadFile(w.path(name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(content)
}

func (w *world) has(name string) bool {
	w.t.Helper()
	_, err := os.Lstat(w.path(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatal(err)
	}
	return err == nil
}

// program installs a shell script that writes its arguments to /calls.
func (w *world) program(name, script string) {
	w.t.Helper()
	w.write("/bin/"+name, "#!/bin/sh\necho \""+name+" $*\" >>"+w.path("/calls")+"\n"+script+"\n")
	if err := os.Chmod(w.path("/bin/"+name), 0o700); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) calls() string {
	if !w.has("/calls") {
		return ""
	}
	return w.read("/calls")
}

// run runs a built-in check. job is nil for HealthCheckProgram.
func (w *world) run(name string, context passivecheck.Context, job *passivecheck.Job) (passivecheck.Result, error) {
	w.t.Helper()
	m, err := machine.Open(machine.Options{Root: w.dir, Jail: "/mnt/jail", Environment: w.environment, Context: context, Job: job, Now: time.Now()})
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			w.t.Error(err)
		}
	}()
	return Find(name)(w.t.Context(), m)
}

// expect runs a check that finds something to report.
func (w *world) expect(name string, context passivecheck.Context, job *passivecheck.Job, state passivecheck.State, details string) {
	w.t.Helper()
	got, err := w.run(name, context, job)
	if err != nil || got.State != state || !strings.Contains(got.Details, details) {
		w.t.Errorf("%s: %+v, %v; want state %d, %q", name, got, err, state, details)
	}
}

func job(gpus ...int) *passivecheck.Job {
	return &passivecheck.Job{ID: 12, UID: os.Getuid(), GID: os.Getgid(), GPUs: gpus}
}

func TestEveryCheckAnswersOnABareNode(t *testing.T) {
	for _, name := range Names() {
		for _, j := range []*passivecheck.Job{nil, job(), job(0)} {
			w := newWorld(t)
			if got, err := w.run(name, passivecheck.Epilog, j); err == nil && got.State == passivecheck.Failed && name != "boot_disk_full" {
				t.Errorf("%s fails where there is nothing: %+v", name, got)
			}
		}
	}
}

func TestTheDirectoryOfAJob(t *testing.T) {
	w := newWorld(t)
	w.expect("job_tmpfs_recreate", passivecheck.Prolog, job(), passivecheck.Skipped, "there is no /mnt/memory")
	w.write("/mnt/jail/mnt/memory/job_12/of another job", "x")
	w.expect("job_tmpfs_recreate", passivecheck.Prolog, job(), passivecheck.Passed, "/mnt/memory/job_12 was made")
	info, err := os.Stat(w.path("/mnt/jail/mnt/memory/job_12"))
	if err != nil || info.Mode().Perm() != 0o700 || w.has("/mnt/jail/mnt/memory/job_12/of another job") {
		t.Errorf("the directory is %v, %v", info, err)
	}
	w.expect("job_tmpfs_delete", passivecheck.Epilog, job(), passivecheck.Passed, "was removed")
	w.expect("job_tmpfs_delete", passivecheck.Epilog, job(), passivecheck.Passed, "was removed")
	if w.has("/mnt/jail/mnt/memory/job_12") {
		t.Error("the directory is still there")
	}
}

// TestNobodyTakesTheDirectoryOfAJob is about the tmpfs as a kubelet mounts it: everybody may write to it.
func TestNobodyTakesTheDirectoryOfAJob(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, for directories of other users")
	}
	w := newWorld(t)
	const memory, dir = "/mnt/jail/mnt/memory", "/mnt/jail/mnt/memory/job_12"
	w.write(dir+"/planted", "x")
	j := job()
	j.UID = 2000
	for _, err := range []error{os.Chown(w.path(dir), 2001, 2001), os.Chmod(w.path(dir), 0o777), os.Chown(w.path(memory), 2001, 2001), os.Chmod(w.path(memory), 0o777)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	w.expect("job_tmpfs_recreate", passivecheck.Prolog, j, passivecheck.Passed, "was made")
	for name, want := range map[string]fs.FileMode{memory: 0o755, dir: 0o700} {
		info, err := os.Lstat(w.path(name))
		if err != nil || info.Mode().Perm() != want || owner(info) != map[string]int{memory: 0, dir: 2000}[name] {
			t.Errorf("%s is %v of %d, %v; want %v", name, info.Mode(), owner(info), err, want)
		}
	}
	if w.has(dir + "/planted") {
		t.Error("the job begins with the file of another user")
	}
}

// TestAJobDoesNotStartWhereOthersCanTakeItsDirectory has a tmpfs whose mode cannot be changed.
func TestAJobDoesNotStartWhereOthersCanTakeItsDirectory(t *testing.T) {
	w := newWorld(t)
	w.mkdir("/mnt/jail/mnt/memory")
	if err := unix.Mount("tmpfs", w.path("/mnt/jail/mnt/memory"), "tmpfs", unix.MS_RDONLY, "mode=777"); err != nil {
		t.Skip("needs root, to mount: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(w.path("/mnt/jail/mnt/memory"), unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	w.expect("job_tmpfs_recreate", passivecheck.Prolog, job(), passivecheck.Failed, "users may write to /mnt/memory")
	// Closed, and full: there is no directory, and no node is drained.
	if err := unix.Mount("", w.path("/mnt/jail/mnt/memory"), "", unix.MS_REMOUNT, "nr_inodes=1"); err != nil {
		t.Fatal(err)
	}
	if got, err := w.run("job_tmpfs_recreate", passivecheck.Prolog, job()); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestALinkOfAUserLeadsOutOfNoJail(t *testing.T) {
	w := newWorld(t)
	w.write("/host/precious", "x")
	w.mkdir("/mnt/jail/mnt/memory")
	w.mkdir("/mnt/jail/dev/shm")
	for link, target := range map[string]string{"/mnt/jail/mnt/memory/job_12": w.path("/host"), "/mnt/jail/dev/shm/x": w.path("/host/precious"), "/mnt/jail/dev/shm/y": "../../../../host"} {
		if err := os.Symlink(target, w.path(link)); err != nil {
			t.Fatal(err)
		}
	}
	w.expect("job_tmpfs_recreate", passivecheck.Prolog, job(), passivecheck.Passed, "")
	w.expect("drop_posix_shmem", passivecheck.Epilog, job(), passivecheck.Passed, "2 entries")
	if w.read("/host/precious") != "x" || w.has("/mnt/jail/dev/shm/x") {
		t.Error("a link was followed, or is still there")
	}
	if info, err := os.Lstat(w.path("/mnt/jail/mnt/memory/job_12")); err != nil || !info.IsDir() {
		t.Errorf("the job has %v, %v", info, err)
	}
}

func TestLeftovers(t *testing.T) {
	old := time.Now().Add(-time.Hour)
	w := newWorld(t)
	w.program("squeue", "echo 21")
	for id, age := range map[string]time.Time{"20": old, "21": old, "22": old, "23": time.Now(), "x": old} {
		dir := "/mnt/jail/mnt/memory/job_" + id
		w.write(dir+"/file", "x")
		if err := os.Chtimes(w.path(dir), age, age); err != nil {
			t.Fatal(err)
		}
	}
	w.write("/proc/77/cmdline", "slurmstepd: [22.batch]")
	w.expect("job_tmpfs_delete_leftover", passivecheck.HealthProgram, nil, passivecheck.Passed, "1 directories were removed")
	for id, stays := range map[string]bool{"20": false, "21": true, "22": true, "23": true, "x": true} {
		if got := w.has("/mnt/jail/mnt/memory/job_" + id); got != stays {
			t.Errorf("job_%s is there: %v", id, got)
		}
	}
	if got := w.calls(); got != "squeue --noheader --nodelist=worker-0 --format=%A\n" {
		t.Errorf("called %q", got)
	}
}

func TestNothingIsRemovedWhileSlurmctldIsSilent(t *testing.T) {
	w := newWorld(t)
	w.program("squeue", "echo no >&2; exit 1")
	w.mkdir("/mnt/jail/mnt/memory/job_20")
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(w.path("/mnt/jail/mnt/memory/job_20"), old, old); err != nil {
		t.Fatal(err)
	}
	if _, err := w.run("job_tmpfs_delete_leftover", passivecheck.HealthProgram, nil); err == nil || !strings.Contains(err.Error(), "squeue") {
		t.Errorf("the error is %v", err)
	}
	if !w.has("/mnt/jail/mnt/memory/job_20") {
		t.Error("it was removed")
	}
}

func TestNoLeftoversAskNobody(t *testing.T) {
	w := newWorld(t)
	w.program("squeue", "")
	w.mkdir("/mnt/jail/mnt/memory/job_20")
	w.expect("job_tmpfs_delete_leftover", passivecheck.HealthProgram, nil, passivecheck.Passed, "no leftovers")
	if got := w.calls(); got != "" {
		t.Errorf("called %q", got)
	}
}

// node returns what scontrol of these tests prints for a node with 8000 MiB.
func node(spec int, state string) string {
	return "echo '   RealMemory=8000 AllocMem=0'\necho '   MemSpecLimit=" + strconv.Itoa(spec) + "'\necho '   State=" + state + "'"
}

func TestMemory(t *testing.T) {
	const meminfo = "MemTotal:  8192000 kB\nMemFree: 1 kB\nMemAvailable:  4096000 kB\n" // 8000 and 4000 MiB
	for _, test := range []struct {
		name, check, scontrol, limit string
		job                          *passivecheck.Job
		state                        passivecheck.State
		details                      string
		calls                        int
	}{
		{"a job's cgroup says what it may use", "alloc_mem_used", "", "4194304001", job(), passivecheck.Failed, "4000 MiB of memory are available, less than the 4000 MiB allocated", 0},
		{"there is enough for the job", "alloc_mem_used", "", "4194304000", job(), passivecheck.Passed, "4000 MiB", 0},
		{"slurmctld says it where there is no limit", "alloc_mem_used", "echo ' Nodes=worker-0 CPU_IDs=0 Mem=5000 GRES='", "max", job(), passivecheck.Failed, "5000 MiB", 1},
		{"a node with enough memory", "alloc_mem_used", node(4000, "IDLE+DRAIN"), "", nil, passivecheck.Passed, "4000 MiB", 1},
		{"a node without", "alloc_mem_used", node(3999, "IDLE+DRAIN"), "", nil, passivecheck.Failed, "less than the 4001 MiB of the node", 1},
		{"an idle node without", "idle_mem_used", node(3999, "IDLE"), "", nil, passivecheck.Failed, "4001 MiB", 1},
		{"a node with a job is not idle", "idle_mem_used", node(3999, "MIXED"), "", nil, passivecheck.Skipped, "has jobs", 1},
		{"a step says so without slurmctld", "idle_mem_used", node(3999, "IDLE"), "1", nil, passivecheck.Skipped, "has jobs", 0},
		{"all of the machine is never available", "idle_mem_used", node(0, "IDLE"), "", nil, passivecheck.Skipped, "limit the memory", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.write("/proc/meminfo", meminfo)
			w.program("scontrol", test.scontrol)
			if test.limit != "" {
				w.write("/sys/fs/cgroup/system.slice/worker-0_slurmstepd.scope/job_12/memory.max", test.limit+"\n")
			}
			w.expect(test.check, passivecheck.HealthProgram, test.job, test.state, test.details)
			if got := strings.Count(w.calls(), "\n"); got != test.calls {
				t.Errorf("called %q", w.calls())
			}
		})
	}
}

func TestHowFullADiskIs(t *testing.T) {
	for _, test := range []struct {
		name                          string
		blocks, free, available, want uint64
	}{
		{"an empty disk", 100, 100, 100, 0},
		{"what is reserved for root counts for nothing", 100, 20, 10, 89},
		{"a part of a percent is one", 1000, 199, 199, 81},
		{"a full disk", 100, 0, 0, 100},
		{"a file system without blocks", 0, 0, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := percentUsed(test.blocks, test.free, test.available); got != test.want {
				t.Errorf("%d%%, want %d%%", got, test.want)
			}
		})
	}
}

func TestWhatThePodMayNotDoIsNoError(t *testing.T) {
	for err, want := range map[error]bool{unix.EACCES: true, unix.EPERM: true, unix.EROFS: true, unix.ENOENT: false, unix.EIO: false} {
		if got := forbidden(&fs.PathError{Op: "open", Path: "x", Err: err}); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
	if forbidden(nil) {
		t.Error("nothing is forbidden")
	}
}

func TestThePageCache(t *testing.T) {
	w := newWorld(t)
	if _, err := w.run("drop_page_cache", passivecheck.Epilog, job()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without the kernel's file: %v", err)
	}
	w.write("/proc/sys/vm/drop_caches", "")
	w.expect("drop_page_cache", passivecheck.Epilog, job(), passivecheck.Passed, "dropped")
	if got := w.read("/proc/sys/vm/drop_caches"); got != "3\n" {
		t.Errorf("wrote %q", got)
	}
}
