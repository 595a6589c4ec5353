// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package squash

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// inside is set in the process of a user who has namespaces of its own.
const inside = "COXSWAIN_SQUASH_TEST_INSIDE"

// covered is set in a process that covers a part of /proc, as container runtimes do.
const covered = "COXSWAIN_SQUASH_TEST_COVERED"

// user is who has images in files here. Group 4242 is one of its others.
const (
	user  = 4141
	other = 4242
)

// deadline bounds what is to come soon.
const deadline = 20 * time.Second

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "sleep":
			Sleep(os.Stdin)
			return
		case "squashfuse":
			fmt.Fprintln(os.Stderr, Confined(os.Args[2:]))
			os.Exit(1)
		}
	}
	if os.Getenv(covered) != "" {
		if err := unix.Mount("/dev/null", "/proc/version", "", unix.MS_BIND, ""); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		_ = os.Unsetenv(covered)
	}
	os.Exit(m.Run())
}

func needsRoot(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root mounts images for users")
	}
	for _, program := range []string{"mksquashfs", "squashfuse"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
}

// squashfs makes an image of files: a path and its content. Further arguments are for mksquashfs.
func squashfs(t testing.TB, files map[string]string, arguments ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "files")
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	image := filepath.Join(t.TempDir(), "image.sqsh")
	out, err := exec.CommandContext(t.Context(), "mksquashfs", append([]string{dir, image, "-quiet", "-no-progress"}, arguments...)...).CombinedOutput()
	if err = errors.Join(err, os.Chmod(image, 0o644)); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return image
}

// served has squashfuse serve a file for the user.
func served(t testing.TB, path string) *Served {
	t.Helper()
	return servedAs(t, path, os.O_RDONLY)
}

func servedAs(t testing.TB, path string, flags int) *Served {
	t.Helper()
	file, err := os.OpenFile(path, flags, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	s, err := OpenFile(file, Owner{user, user}, []uint32{other})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Mount.Close() })
	return s
}

// inNamespaces returns a process that runs a test once more as the user, who is root in namespaces of its own, with a mount.
func inNamespaces(t *testing.T, mount *os.File) *exec.Cmd {
	t.Helper()
	again := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=60s")
	again.Env, again.Dir = append(os.Environ(), inside+"=yes", "TMPDIR=/tmp"), "/"
	again.ExtraFiles = []*os.File{mount}
	again.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: user, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: user, Size: 1}},
		Credential:  &syscall.Credential{NoSetGroups: true},
	}
	return again
}

// asUser runs a body as the user, and gives it the directory of a mount.
func asUser(t *testing.T, mount func() *os.File, body func(t *testing.T, dir string)) {
	t.Helper()
	if os.Getenv(inside) != "" {
		body(t, attached(t))
		return
	}
	needsRoot(t)
	var out bytes.Buffer
	again := inNamespaces(t, mount())
	again.Stdout, again.Stderr = &out, &out
	if err := again.Run(); err != nil || !strings.Contains(out.String(), "--- PASS") {
		t.Fatalf("%v\n%s", err, out.String())
	}
}

// attached mounts what this process got.
func attached(t *testing.T) string {
	t.Helper()
	const dir = "/tmp/image"
	err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("tmpfs", "/tmp", "tmpfs", 0, ""), os.Mkdir(dir, 0o755))
	if err == nil {
		err = unix.MoveMount(3, "", unix.AT_FDCWD, dir, unix.MOVE_MOUNT_F_EMPTY_PATH)
	}
	if err = errors.Join(err, unix.Close(3)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// expectEnd waits until a squashfuse has ended.
func expectEnd(t *testing.T, s *Served) {
	t.Helper()
	select {
	case <-s.Ended:
	case <-time.After(deadline):
		t.Fatal("squashfuse has not ended")
	}
}

// lookAs looks into a mount as the user, in a thread that ends.
func lookAs(mount int) error {
	runtime.LockOSThread()
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, user, user, user); e != 0 {
		return e
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, user, user, user); e != 0 {
		return e
	}
	var status unix.Stat_t
	return unix.Fstat(mount, &status)
}
