// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package container

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/container/rootfs"
	"github.com/coxswain-hpc/coxswain/internal/node/container/step"
	"github.com/coxswain-hpc/coxswain/internal/node/image/mount"
)

// inside is set in a process that has namespaces of its own: the directory of the image.
const inside = "COXSWAIN_CONTAINER_TEST_INSIDE"

// inNamespaces runs a test once more, as root of namespaces of its own, with a directory: the image has files of it, "node" is beside.
func inNamespaces(t *testing.T, files map[string]string, flags uintptr, body func(t *testing.T, dir string)) {
	t.Helper()
	if dir := os.Getenv(inside); dir != "" {
		body(t, dir)
		return
	}
	if os.Getuid() != 0 {
		t.Skip("only root makes these namespaces everywhere")
	}
	// Not below /tmp, over which a root is put together.
	dir, err := os.MkdirTemp("/var/tmp", "container")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	write(t, dir, files)
	again := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	again.Env = append(os.Environ(), inside+"="+dir, "TMPDIR=/var/tmp")
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}}
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | flags, UidMappings: ids, GidMappings: ids}
	if out, err := again.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Fatalf("%v\n%s", err, out)
	}
}

// entered enters the container of a request over the image at a directory.
func entered(t *testing.T, dir string, r *step.Request, u user, mounts string) {
	t.Helper()
	var list []mount.Mount
	if mounts != "" {
		var err error
		if list, err = mount.Parse(mounts); err != nil {
			t.Fatal(err)
		}
	}
	image, err := rootfs.Tree(filepath.Join(dir, "image"), false)
	if err != nil {
		t.Fatal(err)
	}
	v, err := gather(r, u, list)
	if err != nil {
		t.Fatal(err)
	}
	root, err := rootfs.New(rootfs.Layers{Image: image})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(v.show(root, u), root.Enter()); err != nil {
		t.Fatal(err)
	}
}

func expectContent(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s has %q, want %q (%v)", path, got, want, err)
	}
}

// expectFlags checks flags of the mount at a path, of statfs(2).
func expectFlags(t *testing.T, path string, set, unset int64) {
	t.Helper()
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil || fs.Flags&set != set || fs.Flags&unset != 0 {
		t.Errorf("%s has the flags %x, want %x and not %x (%v)", path, fs.Flags, set, unset, err)
	}
}

func TestAContainerShowsOfTheNodeWhatItShould(t *testing.T) {
	inNamespaces(t, map[string]string{"image/bin/a": "image", "image/etc/hosts": "of the image"}, 0, func(t *testing.T, dir string) {
		hosts, err := os.ReadFile("/etc/hosts")
		if err != nil {
			t.Fatal(err)
		}
		entered(t, dir, &step.Request{}, user{name: "root"}, "")
		expectContent(t, "/bin/a", "image")
		expectContent(t, "/etc/hosts", string(hosts))
		if _, err := os.Stat("/proc/self/exe"); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile("/dev/null", []byte("x"), 0); err != nil {
			t.Error(err)
		}
		expectFlags(t, "/proc", unix.ST_NOSUID|unix.ST_NODEV|unix.ST_NOEXEC, unix.ST_RDONLY)
		expectFlags(t, "/sys", unix.ST_RDONLY|unix.ST_NOSUID|unix.ST_NODEV|unix.ST_NOEXEC, 0)
		expectFlags(t, "/dev", unix.ST_NOSUID|unix.ST_NOEXEC, unix.ST_NODEV)
		expectFlags(t, "/etc/hosts", unix.ST_RDONLY, 0)
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			t.Fatal(err)
		}
		below := 0
		for line := range strings.Lines(string(mounts)) {
			if fields := strings.Fields(line); strings.HasPrefix(fields[4], "/sys/") {
				below++
				if !strings.HasPrefix(fields[5], "ro,nosuid,nodev,noexec") {
					t.Errorf("a mount below /sys can be written: %s", line)
				}
			}
		}
		if below == 0 {
			t.Log("nothing is mounted below /sys on this machine")
		}
		for _, path := range []string{"/tmp", "/var/run", "/var/lock"} {
			entries, err := os.ReadDir(path)
			status, failed := os.Stat(path)
			if err = errors.Join(err, failed); err != nil || len(entries) > 0 || status.Mode().Perm() != 0o755 {
				t.Errorf("%s has %v, %v, %v", path, entries, status, err)
			}
			if err := os.WriteFile(path+"/x", nil, 0o600); err != nil {
				t.Error(err)
			}
			expectFlags(t, path, unix.ST_NOSUID|unix.ST_NODEV, unix.ST_RDONLY)
		}
		for _, path := range []string{dir, "/work", "/home", "/opt"} {
			if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s of the node is seen: %v", path, err)
			}
		}
	})
}

func TestMountsOfTheUserComeLastAndInTheirOrder(t *testing.T) {
	files := map[string]string{
		"image/bin/a": "image", "node/home/h": "home", "node/script": "script", "node/data/d": "data", "node/one": "one", "node/data/below/x": "below",
	}
	inNamespaces(t, files, 0, func(t *testing.T, dir string) {
		node := filepath.Join(dir, "node")
		if err := unix.Mount("tmpfs", node+"/data/below", "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
		r := &step.Request{MountHome: new(true), Script: node + "/script", Directory: node}
		entered(t, dir, r, user{hostHome: node + "/home"}, strings.Join([]string{
			"./data:/data", "./data:/ro:ro+nosuid+nodev", "./data:/flat:bind", "./one:/deep/er/one", node + "/missing:/x:nofail", "tmpfs:/scratch:size=1M+mode=700",
			"umount:/tmp", "umount:/nothing:nofail", "./one:/bin/a",
		}, ","))
		for path, want := range map[string]string{
			node + "/home/h": "home", node + "/script": "script", "/data/d": "data", "/ro/d": "data", "/flat/d": "data", "/flat/below/x": "below", "/deep/er/one": "one", "/bin/a": "one",
		} {
			expectContent(t, path, want)
		}
		if _, err := os.Stat("/data/below/x"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("what is mounted below is not shown: %v", err)
		}
		if _, err := os.Stat("/x"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("there is a place for what is not there: %v", err)
		}
		expectFlags(t, "/ro", unix.ST_RDONLY|unix.ST_NOSUID|unix.ST_NODEV, 0)
		expectFlags(t, "/data", 0, unix.ST_RDONLY)
		expectFlags(t, node+"/script", unix.ST_RDONLY, 0)
		expectFlags(t, node+"/home", unix.ST_NOSUID, unix.ST_RDONLY)
		status, err := os.Stat("/scratch")
		if err != nil || status.Mode().Perm() != 0o700 {
			t.Errorf("the tmpfs is %v, %v", status, err)
		}
		if err := os.WriteFile("/scratch/x", make([]byte, 2<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("the tmpfs takes more than its size: %v", err)
		}
		// /tmp is that of the image, which has none: below is what a container writes.
		expectFlags(t, "/tmp", 0, unix.ST_RDONLY)
		var at, root unix.Stat_t
		if err := errors.Join(unix.Stat("/tmp", &at), unix.Stat("/", &root)); err != nil || at.Dev != root.Dev {
			t.Errorf("something is still mounted at /tmp: %v", err)
		}
	})
}

func TestAMountThatCannotBeIsASentence(t *testing.T) {
	inNamespaces(t, map[string]string{"image/bin/a": "image", "node/one": "one"}, 0, func(t *testing.T, dir string) {
		for mounts, want := range map[string]string{
			"/nowhere/x:/x":        "--container-mounts: source path does not exist: /nowhere/x",
			dir + "/node/one/x:/x": "--container-mounts: source path does not exist: " + dir + "/node/one/x",
			"./x:/x":               "--container-mounts: source path does not exist: " + dir + "/node/x",
			"tmpfs:/x:size=lots":   "could not add mount entry: tmpfs:/x:size=lots: ",
		} {
			list, err := mount.Parse(mounts)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := gather(&step.Request{Directory: dir + "/node"}, user{}, list); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: %v, want %s", mounts, err, want)
			}
		}
		for _, r := range []*step.Request{{Script: "/nowhere/script"}, {MountHome: new(true)}} {
			if _, err := gather(r, user{hostHome: "/nowhere/home"}, nil); err == nil || !strings.Contains(err.Error(), "opening ") {
				t.Errorf("%+v: %v", r, err)
			}
		}
	})
}

func TestTheUserIsFoundByNameAndNumber(t *testing.T) {
	const images = "\ndaemon:x:1:1::/:/bin/false"
	inNamespaces(t, map[string]string{"image/etc/passwd": images, "image/etc/group": "daemon:x:1:"}, 0, func(t *testing.T, dir string) {
		entered(t, dir, &step.Request{}, user{name: "alice", uid: 1000, gid: 1001, home: "/home/alice"}, "")
		const nobody = "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
		expectContent(t, "/etc/passwd", "alice:x:1000:1001::/home/alice:/bin/sh\nroot:x:0:0:root:/root:/bin/sh\n"+nobody+"daemon:x:1:1::/:/bin/false")
		expectContent(t, "/etc/group", "alice:x:1001:\nroot:x:0:\nnogroup:x:65534:\ndaemon:x:1:")
	})
}

func TestAnImageWithoutEtcGetsUsers(t *testing.T) {
	inNamespaces(t, map[string]string{"image/bin/a": "image"}, 0, func(t *testing.T, dir string) {
		entered(t, dir, &step.Request{}, user{name: "alice", uid: 1000, gid: 1000, root: true, home: "/root"}, "")
		expectContent(t, "/etc/group", "root:x:0:\nnogroup:x:65534:\n")
		if got, err := os.ReadFile("/etc/passwd"); err != nil || !strings.HasPrefix(string(got), "root:x:0:0:") || strings.Contains(string(got), "alice") {
			t.Errorf("/etc/passwd has %q, %v", got, err)
		}
	})
}

func TestWhoTheUserIs(t *testing.T) {
	for name, test := range map[string]struct {
		request step.Request
		job     step.Environment
		want    user
	}{
		"a user": {step.Request{UID: 1, GID: 2}, step.Environment{"SLURM_JOB_USER": "alice", "USER": "x", "HOME": "/home/a"},
			user{name: "alice", uid: 1, gid: 2, hostHome: "/home/a", home: "/home/a"}},
		"a user of an environment without Slurm's": {step.Request{UID: 1}, step.Environment{"USER": "x", "HOME": "/h"},
			user{name: "x", uid: 1, hostHome: "/h", home: "/h"}},
		"a user without an environment and an account": {step.Request{UID: 1 << 31}, nil, user{name: "user", uid: 1 << 31, hostHome: "/", home: "/"}},
		"a user as root": {step.Request{UID: 1, RemapRoot: new(true)}, step.Environment{"USER": "x", "HOME": "/h"},
			user{name: "x", uid: 1, hostHome: "/h", home: "/root", root: true}},
		"a user who is not to be root": {step.Request{UID: 1, RemapRoot: new(false)}, step.Environment{"USER": "x", "HOME": "/h"},
			user{name: "x", uid: 1, hostHome: "/h", home: "/h"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := userOf(&test.request, test.job); got != test.want {
				t.Errorf("the user is %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestAContainerWithItsOwnNetworkReachesItself(t *testing.T) {
	inNamespaces(t, nil, syscall.CLONE_NEWNET, func(t *testing.T, _ string) {
		connect := func() error {
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			defer func() { _ = listener.Close() }()
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
			if err != nil {
				return err
			}
			return conn.Close()
		}
		if err := errors.Join(startLoopback(&step.Request{Unshare: []string{"ipc"}})); err != nil || connect() == nil {
			t.Errorf("a network that is not the container's is changed: %v", err)
		}
		if err := errors.Join(startLoopback(&step.Request{Unshare: []string{"ipc", "net"}}), connect()); err != nil {
			t.Error(err)
		}
	})
}

// FuzzUser has names that no entry may be made of.
func FuzzUser(f *testing.F) {
	for _, name := range []string{"alice", "a:b", "a\nroot", "", "ä"} {
		f.Add(name, "/home/"+name)
	}
	f.Fuzz(func(t *testing.T, name, home string) {
		u := userOf(&step.Request{UID: 1, GID: 2}, step.Environment{"USER": name, "HOME": home})
		passwd, group := u.entries()
		for _, line := range passwd {
			if strings.Count(line, ":") != 6 || strings.ContainsAny(line, "\n\x00") {
				t.Errorf("an entry of %q and %q is %q", name, home, line)
			}
		}
		for _, line := range group {
			if strings.Count(line, ":") != 3 || strings.ContainsAny(line, "\n\x00") {
				t.Errorf("a group of %q is %q", name, line)
			}
		}
	})
}
