// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/jail"
	"github.com/coxswain-hpc/coxswain/internal/node/jail/view"
)

// inNamespace is the variable that a test sets for itself when it runs in a mount namespace of its own.
const inNamespace = "COXSWAIN_TEST_IN_NAMESPACE"

// isolated runs the test anew in a mount namespace, where it may mount. It returns true there.
func isolated(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inNamespace) != "" {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			t.Fatal(err)
		}
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can mount")
	}
	test := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	test.Env = append(os.Environ(), inNamespace+"=yes")
	test.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	out, err := test.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("%v\n%s", err, out)
	}
	return false
}

// aTree makes directories, files and links below a directory: "a/" is a directory, "a=text" a file, "a>b" a link to b.
func aTree(t *testing.T, dir string, entries ...string) {
	t.Helper()
	for _, entry := range entries {
		var err error
		link, target, isLink := strings.Cut(entry, ">")
		name, content, _ := strings.Cut(entry, "=")
		switch {
		case strings.HasSuffix(entry, "/"):
			err = os.MkdirAll(filepath.Join(dir, entry), 0o755)
		case isLink:
			err = os.Symlink(target, filepath.Join(dir, link))
		default:
			err = os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func contentOf(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func assembler(t *testing.T, dir string) *view.Assembler {
	t.Helper()
	root, err := jail.Open(filepath.Join(dir, "jail"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return &view.Assembler{Jail: root, Run: filepath.Join(dir, "run")}
}

func TestTheViewIsAssembled(t *testing.T) {
	if !isolated(t) {
		return
	}
	dir := t.TempDir()
	aTree(t, dir, "jail/proc/", "jail/run/", "jail/usr/bin/", "jail/tmp/", "jail/data/", "jail/etc/", "jail/etc/hosts=", "jail/usr/bin/srun=old", "jail/usr/bin/sbatch>/run/coxswain/slurm/bin/sbatch",
		"pod/slurm/bin/", "pod/slurm/bin/srun=new", "pod/slurm/bin/sbatch=new", "pod/data/", "pod/data/x=data", "pod/hosts=127.0.0.1", "pod/resolv.conf=nameserver",
		"jail/etc/resolv.conf>../run/systemd/resolve/stub-resolv.conf")
	before := list(t, filepath.Join(dir, "jail"))
	pod := func(name string) string { return filepath.Join(dir, "pod", name) }
	err := assembler(t, dir).Assemble([]view.Step{
		{Target: "/proc"},
		{Source: filepath.Join(dir, "run"), Target: "/run"},
		{Source: pod("hosts"), Target: "/etc/hosts"},
		{Source: pod("resolv.conf"), Target: "/etc/resolv.conf"},
		{Source: pod("nothing"), Target: "/data"},
		{Source: pod("data"), Target: "/absent", Optional: true},
		{Source: pod("slurm"), Target: view.SlurmDir, ReadOnly: true},
		{Source: pod("slurm/bin/srun"), Target: "/usr/bin/srun", ReadOnly: true, OverFile: true},
		{Source: pod("slurm/bin/sbatch"), Target: "/usr/bin/sbatch", ReadOnly: true, OverFile: true},
		{Source: pod("slurm/bin/sbatch"), Target: "/usr/bin/none", ReadOnly: true, OverFile: true},
		{Source: pod("data"), Target: "/data", Recursive: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", filepath.Join(dir, "jail/tmp"), "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	if err := assembler(t, dir).Assemble([]view.Step{{Source: pod("data"), Target: "/tmp/a/b"}, {Source: pod("hosts"), Target: "/tmp/a/hosts"}}); err != nil {
		t.Errorf("mount points below what is the pod's are not made: %v", err)
	}
	in := func(name string) string { return filepath.Join(dir, "jail", name) }
	for name, want := range map[string]string{
		"etc/hosts": "127.0.0.1", "run/systemd/resolve/stub-resolv.conf": "nameserver", "run/coxswain/slurm/bin/srun": "new", "usr/bin/srun": "new", "data/x": "data",
		"tmp/a/b/x": "data", "tmp/a/hosts": "127.0.0.1",
	} {
		if got := contentOf(t, in(name)); got != want {
			t.Errorf("/%s is %q, want %q", name, got, want)
		}
	}
	if _, err := os.Stat(in("proc/self/status")); err != nil {
		t.Errorf("there is no proc: %v", err)
	}
	if err := os.WriteFile(in("run/coxswain/slurm/bin/srun"), nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("Slurm's programs can be written: %v", err)
	}
	if err := os.WriteFile(in("usr/bin/srun"), nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("a program over a file can be written: %v", err)
	}
	for _, at := range []string{"tmp", "usr/bin/srun", "data", "run", "etc/hosts", "proc"} {
		if err := unix.Unmount(in(at), unix.MNT_DETACH); err != nil {
			t.Fatalf("%s: %v", at, err)
		}
	}
	if after := list(t, filepath.Join(dir, "jail")); after != before {
		t.Errorf("the jail has changed:\n%s\nbefore:\n%s", after, before)
	}
	if err := os.WriteFile(in("usr/bin/mine"), nil, 0o600); err != nil {
		t.Errorf("the jail itself cannot be written any more: %v", err)
	}
}

// TestTheJailKnowsTheHostsOfThePod has a jail of ours, whose file is a link, and one that others filled.
func TestTheJailKnowsTheHostsOfThePod(t *testing.T) {
	if !isolated(t) {
		return
	}
	if err := unix.Mount("tmpfs", "/etc/ssh", "tmpfs", 0, ""); err != nil {
		t.Skip(err) // a machine without ssh
	}
	aTree(t, "/etc/ssh", "ssh_known_hosts=worker-* key")
	for name, entry := range map[string]string{"a link": "jail/etc/ssh/ssh_known_hosts>/run/coxswain/ssh_known_hosts", "a file": "jail/etc/ssh/ssh_known_hosts=other"} {
		dir := t.TempDir()
		aTree(t, dir, "jail/proc/", "jail/run/", "jail/etc/ssh/", entry)
		err := assembler(t, dir).Assemble([]view.Step{
			{Source: filepath.Join(dir, "run"), Target: "/run"},
			{Source: view.KnownHosts, Target: view.KnownHosts, ReadOnly: true, OverFile: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		cat := exec.CommandContext(t.Context(), "/bin/cat", filepath.Join(dir, "jail", view.KnownHosts))
		if name == "a link" { // it leads to the /run of who looks
			cat = exec.CommandContext(t.Context(), "/bin/cat", filepath.Join(dir, "jail/run/coxswain/ssh_known_hosts"))
		}
		if out, err := cat.Output(); err != nil || string(out) != "worker-* key" {
			t.Errorf("%s: the jail has %q (%v)", name, out, err)
		}
		for _, at := range []string{"jail/etc/ssh/ssh_known_hosts", "jail/run"} {
			_ = unix.Unmount(filepath.Join(dir, at), unix.MNT_DETACH)
		}
	}
}

// list names everything below a directory, with the content of files.
func list(t *testing.T, dir string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "find", dir, "-printf", "%P %y %s %T@ %l\n").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestAHostileJail has a link at a mount point: nothing is mounted outside of the jail, and the sentence names the path.
func TestAHostileJail(t *testing.T) {
	if !isolated(t) {
		return
	}
	for name, test := range map[string]struct {
		jail []string
		want string
	}{
		"a link to a directory of the host":                          {jail: []string{"jail/x>../host"}, want: "the jail has no /x, on which the pod mounts its own: populate the jail, or make an empty directory there"},
		"an absolute link to the host":                               {jail: []string{"jail/x>HOST"}, want: "the jail has no /x"},
		"a link to the root of process one":                          {jail: []string{"jail/x>/proc/1/root"}, want: "the jail has no /x"},
		"a link to the root of process one, with a proc in the jail": {jail: []string{"jail/proc>/proc", "jail/x>/proc/1/root"}, want: "opening /x of the jail"},
		"a circle":                           {jail: []string{"jail/x>y", "jail/y>x"}, want: "opening /x of the jail: a symbolic link on the way leads in a circle"},
		"a file in the place of a directory": {jail: []string{"jail/x=file"}, want: "/x of the jail is not an empty directory, on which the pod could mount its own"},
		"nothing at all":                     {want: "the jail has no /x, on which the pod mounts its own"},
		"a link to below /run of the host":   {jail: []string{"jail/x>/run/../../host/made"}, want: "the jail has no /x"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			aTree(t, dir, "jail/", "host/", "host/precious=untouched", "pod/", "pod/new=the pod's")
			for _, entry := range test.jail {
				aTree(t, dir, strings.Replace(entry, "HOST", filepath.Join(dir, "host"), 1))
			}
			err := assembler(t, dir).Assemble([]view.Step{{Source: filepath.Join(dir, "pod"), Target: "/x"}})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if got := contentOf(t, filepath.Join(dir, "host/precious")); got != "untouched" {
				t.Errorf("the host's file is %q", got)
			}
			if entries, err := os.ReadDir(filepath.Join(dir, "host")); err != nil || len(entries) != 1 {
				t.Errorf("the host's directory has %v, %v", entries, err)
			}
		})
	}
	t.Run("a link inside of the jail is followed there", func(t *testing.T) {
		dir := t.TempDir()
		aTree(t, dir, "jail/real/", "jail/x>/real", "pod/", "pod/new=the pod's")
		if err := assembler(t, dir).Assemble([]view.Step{{Source: filepath.Join(dir, "pod"), Target: "/x"}}); err != nil {
			t.Fatal(err)
		}
		if got := contentOf(t, filepath.Join(dir, "jail/real/new")); got != "the pod's" {
			t.Errorf("/real/new is %q", got)
		}
		if err := unix.Unmount(filepath.Join(dir, "jail/real"), unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
	})
}

// TestAReadOnlyJail mounts what is needed on a jail that cannot be written.
func TestAReadOnlyJail(t *testing.T) {
	if !isolated(t) {
		return
	}
	dir := t.TempDir()
	aTree(t, dir, "jail/", "pod/", "pod/new=the pod's")
	if err := unix.Mount("tmpfs", filepath.Join(dir, "jail"), "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	aTree(t, dir, "jail/x/")
	if err := unix.Mount("", filepath.Join(dir, "jail"), "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if err := assembler(t, dir).Assemble([]view.Step{{Source: filepath.Join(dir, "pod"), Target: "/x"}}); err != nil {
		t.Fatal(err)
	}
	if got := contentOf(t, filepath.Join(dir, "jail/x/new")); got != "the pod's" {
		t.Errorf("/x/new is %q", got)
	}
	if err := unix.Unmount(filepath.Join(dir, "jail"), unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
}
