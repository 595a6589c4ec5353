// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmctld

import (
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/render/config"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
)

// limits sets which limits a job inherits from the session that submits it, where the user does not. Slurm's default is all of them, so
// jobs would have the little locked memory of a login session, with which InfiniBand does not work. slurmd's limit counts instead.
func limits(d, user *conf.Document) {
	for _, key := range []string{"PropagateResourceLimits", "PropagateResourceLimitsExcept"} {
		if _, set := user.Get(key); set {
			return
		}
	}
	d.Section("LIMITS")
	d.Add("PropagateResourceLimitsExcept", "MEMLOCK")
}

// cgroup is the user's cgroup.conf, or else the operator's.
func (t Texts) cgroup(files Files) *conf.Document {
	for _, f := range files.Config {
		if f.Name != cgroupConfFile {
			continue
		}
		if text, ok := t.Files[f.Path()]; ok {
			return text.Document
		}
		return config.Read(conf.Cgroup, f.Content, f.Path()).Document
	}
	d, _ := conf.Parse(conf.Cgroup, defaultCgroupConf)
	return d
}

// unconfined returns what the configuration lacks to keep jobs to the cores, the memory and the devices that they were given, in the
// words of cgroup.conf(5) and slurm.conf(5); none when nothing is lacking.
func unconfined(slurm, cgroup *conf.Document) []string {
	if CgroupsDisabled(cgroup) {
		return []string{"cgroup.conf without CgroupPlugin=disabled"}
	}
	var out []string
	if !hasTaskCgroup(slurm) {
		out = append(out, "TaskPlugin=task/cgroup in slurm.conf")
	}
	for _, key := range []string{"ConstrainCores", "ConstrainRAMSpace", "ConstrainDevices"} {
		if value, _ := cgroup.Get(key); !yes(value) {
			out = append(out, key+"=yes in cgroup.conf")
		}
	}
	return out
}

// hasTaskCgroup reports whether slurmstepd keeps tasks in control groups. No plugin is Slurm's default.
func hasTaskCgroup(slurm *conf.Document) bool {
	value, _ := slurm.Get("TaskPlugin")
	return slices.ContainsFunc(strings.Split(value, ","), func(item string) bool {
		return strings.TrimPrefix(strings.ToLower(strings.TrimSpace(item)), "task/") == "cgroup"
	})
}

// yes reports whether Slurm reads a value as true: yes, up, true or a number other than 0.
func yes(value string) bool {
	switch strings.ToLower(value) {
	case "yes", "up", "true":
		return true
	}
	number, err := strconv.ParseUint(value, 10, 64)
	return err == nil && number > 0
}
