// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/dev/internal/cgroup"
)

// cniDirectories returns where the CNI plugins may be: Debian's place and upstream's.
func cniDirectories() []string { return []string{"/usr/lib/cni", "/opt/cni/bin"} }

// Gather looks at the machine. dir is where the cluster's files will be.
func Gather(ctx context.Context, dir string, built bool, w Wanted) (Facts, error) {
	f := Facts{Root: os.Geteuid() == 0, Directory: dir, Built: built}
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return f, fmt.Errorf("asking for the free space of %s: %w", dir, err)
	}
	f.FreeBytes = stat.Bavail * uint64(max(stat.Bsize, 0))
	f.OverlayDirectory = stat.Type == unix.OVERLAYFS_SUPER_MAGIC
	if !built {
		_, err := exec.LookPath("go")
		f.NoGo = err != nil
	}
	if w.ControlPlaneOnly {
		return f, nil
	}
	for _, c := range []string{"containerd", "ctr", "runc", "nft", "iptables", "ip", "nsenter", "mount"} {
		if _, err := exec.LookPath(c); err != nil {
			f.Missing = append(f.Missing, c)
		}
	}
	for _, plugin := range []string{"bridge", "portmap"} {
		if _, err := os.Stat(filepath.Join(CNIPlugins(), plugin)); err != nil {
			f.Missing = append(f.Missing, "CNI plugin "+plugin)
		}
	}
	f.Overlay = hasOverlay(ctx)
	mounts, err := cgroup.Mounts()
	f.CgroupMounts = len(mounts)
	return f, err
}

// CNIPlugins returns the directory of the CNI plugins.
func CNIPlugins() string {
	for _, dir := range cniDirectories() {
		if _, err := os.Stat(filepath.Join(dir, "bridge")); err == nil {
			return dir
		}
	}
	return cniDirectories()[0]
}

// hasOverlay looks for overlayfs, which a modular kernel loads when it is first mounted.
func hasOverlay(ctx context.Context) bool {
	listed := func() bool {
		b, err := os.ReadFile("/proc/filesystems")
		return err == nil && strings.Contains(string(b), "\toverlay\n")
	}
	if listed() {
		return true
	}
	_ = exec.CommandContext(ctx, "modprobe", "overlay").Run()
	return listed()
}

// MayRaisePriority reports whether this process may lower oom_score_adj, which
// takes CAP_SYS_RESOURCE.
func MayRaisePriority() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	return data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}
