// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package view assembles what logins and jobs see of a jail: the shared root file system, with what is the pod's mounted over
// it. All mounts are in the mount namespace of the caller. Pods start at the same time, and the file system is shared: so nothing is created
// in the jail but the directories for outputs, which never go.
package view

import (
	"path"
	"slices"
	"strings"
)

// Input is what is assembled.
type Input struct {
	// Upper is the directory below which the container has what belongs into the jail: a mount at Upper/data appears at /data.
	Upper string
	// MountPoints are the mount points of the container.
	MountPoints []string
	// Run is the directory of the pod that is /run of the view.
	Run string
	// Binds are further paths of the pod that appear at the same place, such as slurmd's spool directory.
	Binds []string
	// Slurm is the directory with Slurm's programs for the view; empty for none. Programs are the names of those in its bin.
	Slurm    string
	Programs []string
	// Plugins are the directories with Slurm's plugins. slurmstepd loads some of them after it has moved into the jail.
	Plugins []string
}

// Step is one mount.
type Step struct {
	// Source is a path of the pod; empty for a new proc.
	Source string
	// Target is a path of the jail.
	Target string
	// Recursive takes along what is mounted below the source.
	Recursive, ReadOnly bool
	// Optional steps are left out when the jail has no Target. Any is, when the pod has no Source.
	Optional bool
	// OverFile steps are left out unless the jail has a regular file there, and no symbolic link.
	OverFile bool
}

// SlurmDir is where the view has Slurm's programs. It is below /run, which is the pod's: so they are of the pod's release
// however old the jail is.
const SlurmDir = "/run/coxswain/slurm"

// KnownHosts has the host keys of the pods that users log in to from here, see ssh(1).
const KnownHosts = "/etc/ssh/ssh_known_hosts"

// Plan lists the mounts in the order in which they are made.
func Plan(in Input) []Step {
	steps := []Step{
		{Target: "/proc"},
		{Source: "/sys", Target: "/sys", Recursive: true},
		{Source: "/dev", Target: "/dev", Recursive: true},
		{Source: "/tmp", Target: "/tmp", Recursive: true},
		{Source: in.Run, Target: "/run"},
		{Source: "/run/slurm", Target: "/run/slurm"},
		{Source: "/run/munge", Target: "/run/munge", ReadOnly: true},
		{Source: "/etc/hosts", Target: "/etc/hosts"},
		{Source: "/etc/resolv.conf", Target: "/etc/resolv.conf"},
		{Source: "/var/lib/extrausers", Target: "/var/lib/extrausers", ReadOnly: true, Optional: true},
		{Source: "/var/lib/sss", Target: "/var/lib/sss", Optional: true},
		{Source: KnownHosts, Target: KnownHosts, ReadOnly: true, OverFile: true},
	}
	for _, bind := range in.Binds {
		steps = append(steps, Step{Source: bind, Target: bind, Recursive: true})
	}
	for _, dir := range in.Plugins {
		steps = append(steps, Step{Source: dir, Target: dir, ReadOnly: true, Optional: true})
	}
	if in.Slurm != "" {
		steps = append(steps, Step{Source: in.Slurm, Target: SlurmDir, ReadOnly: true})
		for _, name := range in.Programs {
			steps = append(steps, Step{Source: path.Join(in.Slurm, "bin", name), Target: "/usr/bin/" + name, ReadOnly: true, OverFile: true})
		}
	}
	return append(steps, uppers(in)...)
}

// memoryDir is where each worker of a SlurmCluster has a tmpfs. It was not asked for, and a jail that was not filled by us may lack it.
const memoryDir = "/mnt/memory"

// uppers returns the mounts below Upper, parents first. What is mounted below one of them comes with it.
func uppers(in Input) []Step {
	var steps []Step
	points := slices.Clone(in.MountPoints)
	slices.Sort(points)
	last := ""
	for _, point := range slices.Compact(points) {
		target, below := strings.CutPrefix(point, path.Clean(in.Upper)+"/")
		if !below || last != "" && strings.HasPrefix(point, last+"/") {
			continue
		}
		last = point
		steps = append(steps, Step{Source: point, Target: "/" + target, Recursive: true, Optional: "/"+target == memoryDir})
	}
	return steps
}
