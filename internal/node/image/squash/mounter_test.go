// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package squash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// newMounter returns a Mounter whose mounts go with the test.
func newMounter(t *testing.T) *Mounter {
	t.Helper()
	needsRoot(t)
	dir := t.TempDir()
	m, err := New(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := detachOwn(dir); err != nil {
			t.Error(err)
		}
	})
	return m
}

func mounted(t *testing.T, m *Mounter, file string, owner Owner) *os.File {
	t.Helper()
	mount, err := m.Mount(t.Context(), file, owner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mount.Close() })
	return mount
}

// expectOwned looks at a file of a mount: whose it is, what it has, and that nobody writes it.
func expectOwned(t *testing.T, mount *os.File, owner Owner) {
	t.Helper()
	at := fmt.Sprintf("/proc/self/fd/%d/", mount.Fd())
	for _, name := range []string{"", "bin", "bin/a"} {
		var status unix.Stat_t
		if err := unix.Stat(at+name, &status); err != nil || status.Uid != owner.UID || status.Gid != owner.GID {
			t.Errorf("/%s is of user %d, group %d, want %+v (%v)", name, status.Uid, status.Gid, owner, err)
		}
	}
	if got, err := os.ReadFile(at + "bin/a"); err != nil || string(got) != "content" {
		t.Errorf("the file has %q, %v", got, err)
	}
	if err := os.WriteFile(at+"bin/a", nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("writing a file: %v", err)
	}
	var fs unix.Statfs_t
	const flags = unix.ST_RDONLY | unix.ST_NOSUID | unix.ST_NODEV
	if err := unix.Fstatfs(int(mount.Fd()), &fs); err != nil || fs.Flags&flags != flags {
		t.Errorf("the mount has the flags %x, %v", fs.Flags, err)
	}
}

// loops counts the loop devices of a file.
func loops(t *testing.T, file string) int {
	t.Helper()
	all, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, one := range all {
		if text, err := os.ReadFile(one); err == nil && strings.TrimSpace(string(text)) == file {
			n++
		}
	}
	return n
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %s", what, deadline)
		}
	}
}

// needsKernel skips a test where the kernel mounts no images.
func needsKernel(t *testing.T, m *Mounter) {
	t.Helper()
	if m.Userspace {
		t.Skip("the kernel of this machine mounts no images")
	}
}

func TestFilesOfAnImageAreTheirOwners(t *testing.T) {
	image := squashfs(t, map[string]string{"bin/a": "content"}, "-all-root")
	for name, userspace := range map[string]bool{"by the kernel": false, "by squashfuse": true} {
		t.Run(name, func(t *testing.T) {
			m := newMounter(t)
			m.Userspace = userspace
			for _, owner := range []Owner{{user, other}, {other, user}, {0, 0}, {user, other}} {
				expectOwned(t, mounted(t, m, image, owner), owner)
			}
			if !userspace {
				needsKernel(t, m)
				if n := loops(t, image); n != 1 {
					t.Errorf("%d loop devices have the image", n)
				}
			}
		})
	}
}

func TestAMountOutlivesItsRequestAndItsMounter(t *testing.T) {
	image := squashfs(t, map[string]string{"bin/a": "content"}, "-all-root")
	for name, userspace := range map[string]bool{"by the kernel": false, "by squashfuse": true} {
		t.Run(name, func(t *testing.T) {
			m := newMounter(t)
			m.Userspace = userspace
			ctx, cancel := context.WithCancel(t.Context())
			mount, err := m.Mount(ctx, image, Owner{user, user})
			if err != nil {
				t.Fatal(err)
			}
			cancel()
			again, err := New(m.Dir) // as a service that was started again
			if err != nil {
				t.Fatal(err)
			}
			again.Userspace = userspace
			expectOwned(t, mount, Owner{user, user})
			expectOwned(t, mounted(t, again, image, Owner{other, other}), Owner{other, other})
			_ = mount.Close()
		})
	}
}

func TestAnotherStartLeavesNothingOfTheOneBefore(t *testing.T) {
	image := squashfs(t, map[string]string{"bin/a": "content"}, "-all-root")
	m := newMounter(t)
	for _, userspace := range []bool{false, true} {
		m.Userspace = userspace
		if err := mounted(t, m, image, Owner{user, user}).Close(); err != nil {
			t.Fatal(err)
		}
	}
	fuse := m.fuse[fuseKey{image, Owner{user, user}}]
	for range 3 {
		if _, err := New(m.Dir); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if at := mountsAt(string(text), m.Dir); len(at) != 1 {
		t.Errorf("%d mounts lie on each other", len(at))
	}
	if strings.Contains(string(text), m.Dir+"/") {
		t.Errorf("images are still mounted:\n%s", text)
	}
	eventually(t, "squashfuse ends", func() bool {
		select {
		case <-fuse.ended:
			return true
		default:
			return false
		}
	})
	eventually(t, "the loop device is free", func() bool { return loops(t, image) == 0 })
}

func TestMountsOfOthersStay(t *testing.T) {
	needsRoot(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	if err := os.WriteFile(filepath.Join(dir, "theirs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := New(dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := detachOwn(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "theirs")); err != nil {
		t.Error(err)
	}
}

func TestWhatIsMountedAtADirectoryIsRead(t *testing.T) {
	const text = `22 1 0:20 / / rw - ext4 /dev/a rw
30 22 0:30 / /run/a\040b rw shared:1 - tmpfs tmpfs rw
31 30 0:31 / /run/a\040b rw,nosuid - tmpfs coxswain-images rw
32 31 0:32 / /run/a\040b/1 ro - squashfs /dev/loop0 ro
33 22 0:33 / /run/a ro - squashfs coxswain-images ro
cut off
`
	for dir, want := range map[string]string{"/": "[false]", "/run/a b": "[false true]", "/run/a": "[false]", "/run": "[]"} {
		if got := fmt.Sprint(mountsAt(text, dir)); got != want {
			t.Errorf("at %s is %s, want %s", dir, got, want)
		}
	}
}

func TestASquashfuseThatWasKilledIsStartedAgain(t *testing.T) {
	image := squashfs(t, map[string]string{"bin/a": "content"}, "-all-root")
	m := newMounter(t)
	m.Userspace = true
	_ = mounted(t, m, image, Owner{user, user})
	first := m.fuse[fuseKey{image, Owner{user, user}}]
	out, err := exec.CommandContext(t.Context(), "pgrep", "-f", "squashfuse .* "+first.dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(out), &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-first.ended
	expectOwned(t, mounted(t, m, image, Owner{user, user}), Owner{user, user})
	if _, err := os.Stat(first.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the mount point of the first one is left: %v", err)
	}
}

func TestAnImageThatIsNoneIsAnErrorAndNoReasonForSquashfuse(t *testing.T) {
	for _, userspace := range []bool{false, true} {
		m := newMounter(t)
		m.Userspace = userspace
		garbage := filepath.Join(t.TempDir(), "garbage")
		if err := os.WriteFile(garbage, bytes.Repeat([]byte("x"), 1<<16), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{garbage, "/nowhere/image"} {
			if mount, err := m.Mount(t.Context(), file, Owner{user, user}); err == nil || !strings.Contains(err.Error(), file) {
				t.Errorf("%s is mounted as %v, %v", file, mount, err)
			}
		}
		image := squashfs(t, map[string]string{"bin/a": "content"})
		if _ = mounted(t, m, image, Owner{user, user}); m.Userspace != userspace {
			t.Error("squashfuse mounts all images because of one that is none")
		}
		entries, err := os.ReadDir(m.Dir)
		if err != nil || len(entries) != 1 {
			t.Errorf("there are %d mount points, %v", len(entries), err)
		}
	}
}

func TestASquashfuseThatMountsNothingIsGivenUp(t *testing.T) {
	m := newMounter(t)
	m.Userspace = true
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "squashfuse"), []byte("#!/bin/sh\necho >"+bin+"/started\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the service ends")
	go func() {
		defer cancel(why)
		for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if _, err := os.Stat(bin + "/started"); err == nil {
				return
			}
		}
	}()
	if _, err := m.Mount(ctx, "image", Owner{user, user}); !errors.Is(err, why) {
		t.Errorf("the error is %v", err)
	}
	if entries, err := os.ReadDir(m.Dir); err != nil || len(entries) > 0 {
		t.Errorf("there are %d mount points, %v", len(entries), err)
	}
}

// TestInAUserNamespaceSquashfuseMounts is in one as pods with hostUsers: false are.
func TestInAUserNamespaceSquashfuseMounts(t *testing.T) {
	if dir := os.Getenv(inside); dir != "" {
		m, err := New(filepath.Join(dir, "mounts"))
		if err != nil {
			t.Fatal(err)
		}
		// Squashfuse is in the namespace that it would keep.
		t.Cleanup(func() { _ = detachOwn(m.Dir) })
		var because error
		m.FellBack = func(err error) { because = errors.Join(because, err) }
		for _, owner := range []Owner{{user, other}, {other, user}} {
			expectOwned(t, mounted(t, m, filepath.Join(dir, "image"), owner), owner)
		}
		if !m.Userspace || because == nil || strings.Contains(because.Error(), "\n") {
			t.Errorf("the kernel mounts images: %v, %v", !m.Userspace, because)
		}
		return
	}
	needsRoot(t)
	dir := t.TempDir()
	if err := os.Rename(squashfs(t, map[string]string{"bin/a": "content"}, "-all-root"), filepath.Join(dir, "image")); err != nil {
		t.Fatal(err)
	}
	again := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	again.Env = append(os.Environ(), inside+"="+dir)
	all := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 65536}}
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: all, GidMappings: all, GidMappingsEnableSetgroups: true}
	if out, err := again.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestALoopDeviceThatDevDoesNotHaveIsMade(t *testing.T) {
	needsRoot(t)
	path := filepath.Join(t.TempDir(), "loop0")
	for range 2 {
		device, err := openLoop(path, 0)
		if err != nil {
			t.Fatal(err)
		}
		var status unix.Stat_t
		if err := unix.Fstat(int(device.Fd()), &status); err != nil || status.Rdev != unix.Mkdev(7, 0) || status.Mode != unix.S_IFBLK|0o600 {
			t.Errorf("the device is %x with mode %o, %v", status.Rdev, status.Mode, err)
		}
		_ = device.Close()
	}
}
