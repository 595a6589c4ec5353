// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preflight finds what a machine lacks for a cluster before anything on
// it is touched.
package preflight

import (
	"fmt"
	"slices"
	"strings"
)

// Facts is what was found out about the machine.
type Facts struct {
	Root bool
	// NoGo is true if there is no Go and the programs are not built.
	NoGo bool
	// Missing programs were looked for and not found.
	Missing []string
	// FreeBytes is the space left for Directory.
	FreeBytes uint64
	Directory string
	// OverlayDirectory is true if Directory itself is on an overlay file
	// system, which cannot carry another one.
	OverlayDirectory bool
	// Overlay is true if the kernel knows overlayfs.
	Overlay bool
	// CgroupMounts is the number of mounted cgroup hierarchies.
	CgroupMounts int
	// Built is true if the programs need not be compiled.
	Built bool
}

// Wanted is what the cluster is to be.
type Wanted struct {
	ControlPlaneOnly bool
}

const (
	gigabyte = 1 << 30
	// buildSpace is what Go's caches and the programs take, runSpace what a
	// small cluster with its images does.
	buildSpace = 8 * gigabyte
	runSpace   = 2 * gigabyte
)

// packageOf returns the Debian package of something that was looked for.
func packageOf(missing string) string {
	return map[string]string{
		"containerd":         "containerd",
		"ctr":                "containerd",
		"runc":               "runc",
		"CNI plugin bridge":  "containernetworking-plugins",
		"CNI plugin portmap": "containernetworking-plugins",
		"nft":                "nftables",
		"iptables":           "iptables",
		"ip":                 "iproute2",
		"nsenter":            "util-linux",
		"mount":              "mount",
	}[missing]
}

// Problems lists what keeps the wanted cluster from running, each with what to
// do about it. All are listed at once, so that they are solved at once.
func Problems(f Facts, w Wanted) []string {
	var problems []string
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if !f.Root && !w.ControlPlaneOnly {
		add("nodes need root: run localkube with sudo, or with --control-plane-only")
	}
	if f.NoGo {
		add("Go is missing, which builds Kubernetes: install it from https://go.dev/dl (Debian's golang may be too old for this module)")
	}
	if len(f.Missing) > 0 {
		add("missing programs: %s; install them with\n    apt-get install -y --no-install-recommends %s", strings.Join(f.Missing, ", "), strings.Join(packagesOf(f.Missing), " "))
	}
	need, what := uint64(runSpace), "to run"
	if !f.Built {
		need, what = buildSpace+runSpace, "to build and run"
	}
	if f.FreeBytes < need {
		add("%s has %.1f GiB free and %.0f are needed %s: free some, or set XDG_CACHE_HOME to a directory elsewhere", f.Directory, float64(f.FreeBytes)/gigabyte, float64(need)/gigabyte, what)
	}
	if w.ControlPlaneOnly {
		return problems
	}
	if !f.Overlay {
		add("the kernel has no overlayfs (not in /proc/filesystems): load it with \"modprobe overlay\"")
	}
	if f.OverlayDirectory {
		add("%s is itself on an overlay file system (a container's root?), where containers cannot have theirs: set XDG_CACHE_HOME to a directory on a real disk or tmpfs", f.Directory)
	}
	if f.CgroupMounts == 0 {
		add("no cgroup hierarchy is mounted: mount one with \"mount -t cgroup2 none /sys/fs/cgroup\"")
	}
	return problems
}

func packagesOf(missing []string) []string {
	var names []string
	for _, m := range missing {
		if p := packageOf(m); p != "" && !slices.Contains(names, p) {
			names = append(names, p)
		}
	}
	slices.Sort(names)
	return names
}
