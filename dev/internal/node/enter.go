// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/dev/internal/cgroup"
)

// enter turns a process with fresh namespaces into the start of a node.
func enter(spec Spec) error {
	if err := unix.Sethostname([]byte(spec.Name)); err != nil {
		return fmt.Errorf("setting the hostname: %w", err)
	}
	if err := raiseFileLimit(); err != nil {
		return err
	}
	if err := joinCgroup(spec.Cgroup); err != nil {
		return err
	}
	if err := mountAll(spec); err != nil {
		return err
	}
	return tuneNetwork()
}

// joinCgroup takes the node out of the group of the shell or session that
// happened to run localkube.
func joinCgroup(path string) error {
	mounts, err := cgroup.Mounts()
	if err != nil {
		return err
	}
	return cgroup.Join(mounts, path)
}

// mountAll gives the node a /proc, /var and /run of its own. Mounts of the
// host still arrive (slave), mounts of the node never leave, and pods can
// share mounts with their node (shared).
func mountAll(spec Spec) error {
	for _, propagation := range []uintptr{unix.MS_SLAVE, unix.MS_SHARED} {
		if err := unix.Mount("", "/", "", propagation|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("changing mount propagation: %w", err)
		}
	}
	uncover, err := keepVisible(spec.Root, "/var", "/run")
	if err != nil {
		return err
	}
	if err := prepareVar(spec.Var); err != nil {
		return err
	}
	if err := unix.Mount(spec.Var, "/var", "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting /var: %w", err)
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mounting /run: %w", err)
	}
	if err := os.MkdirAll("/run/lock", 0o750); err != nil {
		return fmt.Errorf("preparing /run: %w", err)
	}
	if err := uncover(); err != nil {
		return err
	}
	// Where it is a link into /run, it leads nowhere by now, which is as good.
	if err := unix.Mount(spec.Resolv, "/etc/resolv.conf", "", unix.MS_BIND, ""); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("mounting /etc/resolv.conf: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	return shadowSysctls()
}

// keepVisible remembers the tree at dir if it lies below a directory that is
// about to be covered; the returned function puts it back on top.
func keepVisible(dir string, covered ...string) (func() error, error) {
	below := false
	for _, c := range covered {
		below = below || strings.HasPrefix(dir, c+"/")
	}
	if !below {
		return func() error { return nil }, nil
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return nil, fmt.Errorf("keeping %s visible: %w", dir, err)
	}
	return func() error {
		defer func() { _ = unix.Close(fd) }()
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return fmt.Errorf("keeping %s visible: %w", dir, err)
		}
		if err := unix.MoveMount(fd, "", unix.AT_FDCWD, dir, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("keeping %s visible: %w", dir, err)
		}
		return nil
	}, nil
}

// prepareVar fills a directory with what programs expect below /var.
func prepareVar(dir string) error {
	for _, sub := range []string{"cache", "lib/kubelet", "lib/containerd", "log/pods", "log/containers", "spool", "tmp"} {
		//nolint:gosec // A /var that only root can enter would be unlike any other to pods that mount parts of it.
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return fmt.Errorf("preparing /var: %w", err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "tmp"), 0o777|fs.ModeSticky); err != nil {
		return fmt.Errorf("preparing /var: %w", err)
	}
	for link, target := range map[string]string{"run": "/run", "lock": "/run/lock"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("preparing /var: %w", err)
		}
	}
	return nil
}

// shadowed returns the settings of the whole machine that a kubelet wants to
// change. Each is covered by a file that already holds the wanted value, so
// the machine keeps its own.
func shadowed() map[string]string {
	return map[string]string{
		"vm/overcommit_memory":      "1",
		"vm/panic_on_oom":           "0",
		"kernel/panic":              "10",
		"kernel/panic_on_oops":      "1",
		"kernel/keys/root_maxkeys":  "1000000",
		"kernel/keys/root_maxbytes": "25000000",
	}
}

func shadowSysctls() error {
	for name, value := range shadowed() {
		target := filepath.Join("/proc/sys", name)
		if _, err := os.Stat(target); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		file := filepath.Join("/run/sysctl", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			return fmt.Errorf("covering the sysctl %s: %w", name, err)
		}
		if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
			return fmt.Errorf("covering the sysctl %s: %w", name, err)
		}
		if err := unix.Mount(file, target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("covering the sysctl %s: %w", name, err)
		}
	}
	return nil
}

// tuneNetwork sets sysctls of the node's own network namespace.
func tuneNetwork() error {
	for name, value := range map[string]string{
		"net/ipv4/ip_forward":                  "1",
		"net/ipv4/conf/all/rp_filter":          "0",
		"net/ipv4/conf/default/rp_filter":      "0",
		"net/ipv4/conf/all/send_redirects":     "0",
		"net/ipv4/conf/default/send_redirects": "0",
	} {
		if err := os.WriteFile(filepath.Join("/proc/sys", name), []byte(value), 0); err != nil {
			return fmt.Errorf("setting the node's sysctl %s: %w", name, err)
		}
	}
	return nil
}

// raiseFileLimit lets containers open as many files as the host allows.
func raiseFileLimit() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("reading the limit of open files: %w", err)
	}
	limit.Cur = limit.Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("raising the limit of open files: %w", err)
	}
	return nil
}
