// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// addScripts mounts prolog, epilog and the like in workers of a NodeSet, from where the login pods have them. A NodeSet that
// mounts something there itself keeps it. slurmd drains a node if it does not find the prolog of the first job. The
// predecessor's charts mount the ConfigMap with these scripts in the login pods only. TaskProlog runs in the jail, where there is
// one, and so the scripts are there as well.
func (c *composer) addScripts(s *storage, jail *slinkyv1beta1.Jail) {
	for _, m := range c.spec.SlurmNodes.Login.Volumes.CustomMounts {
		if !c.holdsScripts(m.MountPath, s) || slices.ContainsFunc(s.mounts, func(other corev1.VolumeMount) bool { return other.Name == m.Name }) {
			continue
		}
		source, ok := c.sources[m.VolumeSourceName]
		if !ok || source.ConfigMap == nil {
			continue // the SlurmCluster reports one that is missing
		}
		s.mounts = append(s.mounts, corev1.VolumeMount{Name: m.Name, MountPath: m.MountPath, SubPath: m.SubPath, ReadOnly: m.ReadOnly})
		s.volumes = append(s.volumes, corev1.Volume{Name: m.Name, VolumeSource: *source.DeepCopy()})
		inside := path.Join(slinkyv1beta1.JailUpperDir, m.MountPath)
		if jail != nil && !slices.ContainsFunc(s.mounts, func(other corev1.VolumeMount) bool { return path.Clean(other.MountPath) == inside }) {
			s.mounts = append(s.mounts, corev1.VolumeMount{Name: m.Name, MountPath: inside, SubPath: m.SubPath, ReadOnly: m.ReadOnly})
		}
	}
}

// scriptDirs are the directories that addScripts mounts into the jail.
func (c *composer) scriptDirs() []string {
	var out []string
	for _, m := range c.spec.SlurmNodes.Login.Volumes.CustomMounts {
		if source, ok := c.sources[m.VolumeSourceName]; ok && source.ConfigMap != nil && c.holdsScripts(m.MountPath, &storage{}) {
			out = append(out, m.MountPath)
		}
	}
	return out
}

// holdsScripts reports whether a script of slurm.conf is below a directory, and no mount is above the script.
func (c *composer) holdsScripts(dir string, s *storage) bool {
	config := &c.spec.SlurmConfig
	scripts := []string{config.Prolog, config.Epilog, config.TaskProlog}
	if health := c.spec.HealthCheckConfig; health != nil {
		scripts = append(scripts, health.HealthCheckProgram)
	}
	return slices.ContainsFunc(scripts, func(script string) bool {
		return isBelow(script, dir) && !slices.ContainsFunc(s.mounts, func(m corev1.VolumeMount) bool { return isBelow(script, m.MountPath) })
	})
}

// isBelow reports whether a file is dir or in it.
func isBelow(file, dir string) bool {
	file, dir = path.Clean(file), path.Clean(dir)
	return path.IsAbs(file) && dir != "/" && (file == dir || strings.HasPrefix(file, dir+"/"))
}
