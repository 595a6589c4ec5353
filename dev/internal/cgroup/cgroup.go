// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cgroup makes and removes the control groups below which a node's
// kubelet puts its pods, in version 1 hierarchies, version 2, or both.
package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Mount is a mounted cgroup hierarchy.
type Mount struct {
	Path string
	// Unified is true for cgroup version 2.
	Unified bool
}

// Mounts lists the hierarchies mounted in this process's mount namespace.
func Mounts() ([]Mount, error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("listing cgroup mounts: %w", err)
	}
	return parseMounts(string(b)), nil
}

// parseMounts reads proc_pid_mountinfo(5).
func parseMounts(mountinfo string) []Mount {
	var mounts []Mount
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(kind) == 0 {
			continue
		}
		if kind[0] == "cgroup" || kind[0] == "cgroup2" {
			mounts = append(mounts, Mount{Path: fields[4], Unified: kind[0] == "cgroup2"})
		}
	}
	return mounts
}

// Create makes the group path (relative, such as "localkube-1a2b3c/node-1") in
// every hierarchy.
func Create(mounts []Mount, path string) error {
	for _, m := range mounts {
		if err := os.MkdirAll(filepath.Join(m.Path, path), 0o750); err != nil {
			return fmt.Errorf("making the cgroup %s: %w", path, err)
		}
		var err error
		if m.Unified {
			err = enableControllers(m.Path, path)
		} else {
			err = fillCpuset(m.Path, path)
		}
		if err != nil {
			return fmt.Errorf("preparing the cgroup %s: %w", path, err)
		}
	}
	return nil
}

// Join moves this process, and with it those that it will start, into the group
// path of every hierarchy.
func Join(mounts []Mount, path string) error {
	for _, m := range mounts {
		if err := os.WriteFile(filepath.Join(m.Path, path, "cgroup.procs"), []byte("0"), 0); err != nil {
			return fmt.Errorf("joining the cgroup %s: %w", path, err)
		}
	}
	return nil
}

// fillCpuset copies CPUs and memory nodes downwards: a new version 1 cpuset is
// empty, and an empty one accepts no process.
func fillCpuset(mount, path string) error {
	dir := mount
	for part := range strings.SplitSeq(path, "/") {
		parent := dir
		dir = filepath.Join(dir, part)
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			have, err := os.ReadFile(filepath.Join(dir, file))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			if strings.TrimSpace(string(have)) != "" {
				continue
			}
			value, err := os.ReadFile(filepath.Join(parent, file))
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, file), value, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// enableControllers delegates all controllers to the group: a version 2
// controller works in a group only if each ancestor passes it on.
func enableControllers(mount, path string) error {
	dir := mount
	for part := range strings.SplitSeq(path, "/") {
		controllers, err := readFields(filepath.Join(dir, "cgroup.controllers"))
		if err != nil {
			return err
		}
		enabled, err := readFields(filepath.Join(dir, "cgroup.subtree_control"))
		if err != nil {
			return err
		}
		for _, c := range controllers {
			if slices.Contains(enabled, c) {
				continue
			}
			// One by one: a controller that cannot be passed on (real-time
			// processes and cpu, for example) must not keep the others back.
			if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0); err != nil && needed(c) {
				return fmt.Errorf("enabling the controller %s in %s: %w", c, dir, err)
			}
		}
		dir = filepath.Join(dir, part)
	}
	return nil
}

func needed(controller string) bool {
	return slices.Contains([]string{"cpu", "cpuset", "memory", "pids"}, controller)
}

// SubtreeControl returns, for each version 2 hierarchy, the controllers that
// its root passes on.
func SubtreeControl(mounts []Mount) (map[string][]string, error) {
	enabled := map[string][]string{}
	for _, m := range mounts {
		if !m.Unified {
			continue
		}
		fields, err := readFields(filepath.Join(m.Path, "cgroup.subtree_control"))
		if err != nil {
			return nil, fmt.Errorf("reading enabled cgroup controllers: %w", err)
		}
		enabled[m.Path] = fields
	}
	return enabled, nil
}

// RestoreSubtreeControl disables the controllers that were not enabled before.
// One that is in use by now stays enabled: the kernel refuses.
func RestoreSubtreeControl(before map[string][]string) error {
	for mount, enabled := range before {
		now, err := readFields(filepath.Join(mount, "cgroup.subtree_control"))
		if err != nil {
			return fmt.Errorf("restoring enabled cgroup controllers: %w", err)
		}
		for _, c := range now {
			if slices.Contains(enabled, c) {
				continue
			}
			err := os.WriteFile(filepath.Join(mount, "cgroup.subtree_control"), []byte("-"+c), 0)
			if err != nil && !errors.Is(err, syscall.EBUSY) {
				return fmt.Errorf("restoring enabled cgroup controllers: %w", err)
			}
		}
	}
	return nil
}

func readFields(path string) ([]string, error) {
	b, err := os.ReadFile(path)
	return strings.Fields(string(b)), err
}

// Remove removes the group path and all below it from every hierarchy. It
// waits for the last processes to leave until ctx is done.
func Remove(ctx context.Context, mounts []Mount, path string) error {
	for _, m := range mounts {
		root := filepath.Join(m.Path, path)
		for {
			err := removeTree(root)
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("removing the cgroup %s: %w", root, err)
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	return nil
}

// removeTree removes directories only; the files in them belong to the kernel.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
