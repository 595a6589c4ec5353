// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rootfs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// inside is set in the process that has namespaces of its own.
const inside = "COXSWAIN_ROOTFS_TEST_INSIDE"

// inNamespaces runs a test once more, in a user and a mount namespace of its own, with an image that files describe: a path and its
// content; one that begins with -> is a link, one that ends with / is a directory. body runs there.
func inNamespaces(t *testing.T, files map[string]string, body func(t *testing.T, image *os.File)) {
	t.Helper()
	if dir := os.Getenv(inside); dir != "" {
		image, err := Tree(dir, false)
		if err != nil {
			t.Fatal(err)
		}
		body(t, image)
		return
	}
	dir, err := os.MkdirTemp("/var/tmp", "rootfs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, content := range files {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if link, ok := strings.CutPrefix(content, "->"); ok {
			err = errors.Join(err, os.Symlink(link, path))
		} else if strings.HasSuffix(name, "/") {
			err = errors.Join(err, os.MkdirAll(path, 0o755))
		} else {
			err = errors.Join(err, os.WriteFile(path, []byte(content), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	again.Env = append(os.Environ(), inside+"="+dir)
	again.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := again.CombinedOutput()
	if errors.Is(err, unix.EPERM) {
		t.Skipf("no root file system was made: this user may make no user namespace: %v", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// made makes a root.
func made(t *testing.T, image *os.File) *Root {
	t.Helper()
	root, err := New(Layers{Image: image})
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// source is a mount of a file or a directory of the node.
func source(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := Tree(path, false)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func enter(t *testing.T, root *Root) {
	t.Helper()
	if err := root.Enter(); err != nil {
		t.Fatal(err)
	}
}

func expectFile(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s has %q, want %q (%v)", path, got, want, err)
	}
}

func TestARootShowsTheImageAndKeepsWhatIsWritten(t *testing.T) {
	inNamespaces(t, map[string]string{"etc/a": "image", "bin/": ""}, func(t *testing.T, image *os.File) {
		root := made(t, image)
		if err := root.WriteFile("/etc/b", []byte("written")); err != nil {
			t.Fatal(err)
		}
		enter(t, root)
		expectFile(t, "/etc/a", "image")
		expectFile(t, "/etc/b", "written")
		entries, err := os.ReadDir("/")
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if err != nil || !slices.Equal(names, []string{"bin", "etc"}) {
			t.Errorf("the root has %q, %v", names, err)
		}
	})
}

func TestNothingIsWrittenToTheImage(t *testing.T) {
	var dir string
	inNamespaces(t, map[string]string{"etc/a": "image"}, func(t *testing.T, image *os.File) {
		dir = os.Getenv(inside)
		root := made(t, image)
		if err := errors.Join(root.WriteFile("/etc/a", []byte("changed")), root.WriteFile("/new", []byte("new"))); err != nil {
			t.Fatal(err)
		}
		expectFile(t, filepath.Join(dir, "etc/a"), "image")
		if _, err := os.Lstat(filepath.Join(dir, "new")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the image has a new file: %v", err)
		}
	})
}

func TestMountsAppearWhereTheyAreAskedFor(t *testing.T) {
	inNamespaces(t, map[string]string{"etc/": "", "link": "->/deep/down", "there/x": "image"}, func(t *testing.T, image *os.File) {
		root := made(t, image)
		for target, of := range map[string]string{"/a/b/c": "/proc/version", "/link/e": "/proc/version", "relative": "/proc", "/there": "/proc/self"} {
			if err := root.Mount(source(t, of), target, true); err != nil {
				t.Errorf("%s: %v", target, err)
			}
		}
		if err := root.Mount(source(t, "/proc/version"), "/nowhere/f", false); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a place that is not to be made: %v", err)
		}
		version, err := os.ReadFile("/proc/version")
		if err != nil {
			t.Fatal(err)
		}
		enter(t, root)
		for _, path := range []string{"/a/b/c", "/deep/down/e", "/relative/version"} {
			expectFile(t, path, string(version))
		}
		if _, err := os.Stat("/there/x"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the file below the mount is seen: %v", err)
		}
	})
}

func TestNoLinkOfAnImageLeadsOutOfIt(t *testing.T) {
	out, err := os.MkdirTemp("/var/tmp", "outside")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(out) })
	if given := os.Getenv("COXSWAIN_ROOTFS_TEST_OUTSIDE"); given != "" {
		out = given
	}
	t.Setenv("COXSWAIN_ROOTFS_TEST_OUTSIDE", out)
	files := map[string]string{
		"up": "->../../../../../.." + out, "absolute": "->" + out, "proc": "->/proc/self/root" + out, "loop": "->loop", "etc/passwd": "->" + out + "/passwd",
	}
	inNamespaces(t, files, func(t *testing.T, image *os.File) {
		root := made(t, image)
		for _, name := range []string{"/up/f", "/absolute/f", "/proc/f", "/etc/passwd"} {
			if err := root.WriteFile(name, []byte("x")); err != nil {
				t.Logf("%s: %v", name, err)
			}
			if err := root.Mount(source(t, "/proc/version"), name+"2", true); err != nil {
				t.Logf("%s: %v", name, err)
			}
		}
		for _, name := range []string{"/loop/f", "../f", "/a/../../f"} {
			if err := root.Mount(source(t, "/proc/version"), name, true); err == nil {
				t.Errorf("a mount at %s is made", name)
			}
		}
		entries, err := os.ReadDir(out)
		if err != nil || len(entries) > 0 {
			t.Errorf("outside are %v, %v", entries, err)
		}
	})
}

func TestAReadOnlyRootIsWrittenByNobody(t *testing.T) {
	inNamespaces(t, map[string]string{"etc/a": "image"}, func(t *testing.T, image *os.File) {
		root := made(t, image)
		tmpfs, err := Tmpfs(map[string]string{"size": "1M"})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(root.Mount(tmpfs, "/scratch", true), root.ReadOnly()); err != nil {
			t.Fatal(err)
		}
		enter(t, root)
		if err := os.WriteFile("/x", nil, 0o600); !errors.Is(err, unix.EROFS) {
			t.Errorf("writing the root: %v", err)
		}
		if err := os.WriteFile("/scratch/x", nil, 0o600); err != nil {
			t.Errorf("writing a mount: %v", err)
		}
	})
}

func TestAttributesHoldInTheContainer(t *testing.T) {
	inNamespaces(t, map[string]string{"m/": ""}, func(t *testing.T, image *os.File) {
		root := made(t, image)
		tmpfs, err := Tmpfs(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(Attributes{Set: unix.MOUNT_ATTR_RDONLY}.Apply(tmpfs), root.Mount(tmpfs, "/m", false)); err != nil {
			t.Fatal(err)
		}
		enter(t, root)
		if err := os.WriteFile("/m/x", nil, 0o600); !errors.Is(err, unix.EROFS) {
			t.Errorf("writing what is read-only: %v", err)
		}
	})
}

func TestWhatIsMountedCanBeDetached(t *testing.T) {
	inNamespaces(t, map[string]string{"m/x": "image"}, func(t *testing.T, image *os.File) {
		root := made(t, image)
		if err := errors.Join(root.Mount(source(t, "/proc"), "/m", false), root.Detach("/m")); err != nil {
			t.Fatal(err)
		}
		enter(t, root)
		expectFile(t, "/m/x", "image")
	})
}
