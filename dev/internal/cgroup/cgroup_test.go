// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const mountinfo = `30 25 0:27 / /dev/shm rw,relatime - tmpfs tmpfs rw
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime shared:9 - cgroup cgroup rw,cpuset
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`

func TestParseMounts(t *testing.T) {
	want := []Mount{{Path: "/sys/fs/cgroup/cpuset"}, {Path: "/sys/fs/cgroup/unified", Unified: true}}
	if diff := cmp.Diff(want, parseMounts(mountinfo)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzParseMounts(f *testing.F) {
	f.Add(mountinfo)
	f.Add("1 - cgroup\n - \n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, m := range parseMounts(text) {
			if m.Path == "" {
				t.Errorf("a mount without a path from %q", text)
			}
		}
	})
}

// The files of a cgroup are made by the kernel; here they are ordinary ones.
func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func TestEmptyCpusetsAreFilledFromAbove(t *testing.T) {
	dir := t.TempDir()
	for group, cpus := range map[string]string{"": "0-3", "a": "1", "a/b": "", "a/b/c": ""} {
		write(t, filepath.Join(dir, group, "cpuset.cpus"), cpus+"\n")
		write(t, filepath.Join(dir, group, "cpuset.mems"), "\n")
	}
	write(t, filepath.Join(dir, "cpuset.mems"), "0\n")
	if err := Create([]Mount{{Path: dir}}, "a/b/c"); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"a/cpuset.cpus": "1", "a/b/c/cpuset.cpus": "1", "a/b/c/cpuset.mems": "0"} {
		if got := read(t, filepath.Join(dir, file)); got != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
}

func TestControllersAreEnabledAndRestored(t *testing.T) {
	dir := t.TempDir()
	for _, group := range []string{"", "a"} {
		write(t, filepath.Join(dir, group, "cgroup.controllers"), "memory pids\n")
		write(t, filepath.Join(dir, group, "cgroup.subtree_control"), "memory\n")
	}
	mounts := []Mount{{Path: dir, Unified: true}, {Path: "/nonexistent"}}
	before, err := SubtreeControl(mounts)
	if err != nil {
		t.Fatal(err)
	}
	if err := Create(mounts[:1], "a/b"); err != nil {
		t.Fatal(err)
	}
	// The last write is all that an ordinary file keeps.
	for _, file := range []string{"cgroup.subtree_control", "a/cgroup.subtree_control"} {
		if got := read(t, filepath.Join(dir, file)); got != "+pids" {
			t.Errorf("wrote %q to %s, want +pids", got, file)
		}
	}
	write(t, filepath.Join(dir, "cgroup.subtree_control"), "memory pids\n")
	if err := RestoreSubtreeControl(before); err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(dir, "cgroup.subtree_control")); got != "-pids" {
		t.Errorf("wrote %q, want -pids", got)
	}
}

func TestRemoveTakesTheWholeTree(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a/b/c"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Remove(t.Context(), []Mount{{Path: dir}, {Path: filepath.Join(dir, "nothing")}}, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); !os.IsNotExist(err) {
		t.Errorf("the group is still there: %v", err)
	}
}
