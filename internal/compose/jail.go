// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// jailSource is the volume source that is the jail of a cluster whose components name none.
const jailSource = "jail"

// clusterJail is the name of the volume source with the jail of the components that name none: that of slurmctld, of the login
// pods or of the workers, or the source called jail. Empty if none of them exists.
func (c *composer) clusterJail() string {
	nodes := &c.spec.SlurmNodes
	named := []*nebiusv1.NodeVolume{nodes.Controller.Volumes.Jail, nodes.Login.Volumes.Jail}
	if nodes.Worker != nil {
		named = append(named, nodes.Worker.Volumes.Jail)
	}
	for _, volume := range named {
		if volume != nil && volume.VolumeSourceName != "" {
			return volume.VolumeSourceName
		}
	}
	if slices.ContainsFunc(c.spec.VolumeSources, func(s nebiusv1.VolumeSource) bool { return s.Name == jailSource }) {
		return jailSource
	}
	return ""
}

// jail is the jail of a component: the one that it names, or that of the cluster; nil without either.
func (c *composer) jail(volume *nebiusv1.NodeVolume, at string) *slinkyv1beta1.Jail {
	if volume != nil {
		c.ignore(volume.VolumeClaimTemplateSpec != nil, at+".volumeClaimTemplateSpec")
		c.note(volume.VolumeClaimTemplateSpec != nil, at+".volumeClaimTemplateSpec: would give each pod an empty file system of its own, "+
			"which nothing fills and no pod shares; the jail of the cluster is mounted instead, if spec.volumeSources has one")
		if volume.VolumeSourceName != "" {
			return jailOf(c.source(volume.VolumeSourceName, at+".volumeSourceName"))
		}
	}
	if source, ok := c.sources[c.clusterJail()]; ok {
		return jailOf(&source)
	}
	return nil // a source that does not exist is reported where it is named
}

// nodeSetJail is the jail of a NodeSet's workers.
func (c *composer) nodeSetJail(volumes *nebiusv1alpha1.SlurmdVolumes) *slinkyv1beta1.Jail {
	if volumes.Jail == nil {
		return c.jail(nil, "")
	}
	return jailOf(c.volumeSource(volumes.Jail, "spec.slurmd.volumes.jail"))
}

func jailOf(source *corev1.VolumeSource) *slinkyv1beta1.Jail {
	if source == nil {
		return nil
	}
	return &slinkyv1beta1.Jail{VolumeSource: embedded.VolumeSource{RawExtension: embedded.From(fieldsOf(*source))}}
}

// inJail moves mounts that a user wants at a path of the jail to the path of the container for that.
func inJail(mounts []mount) []mount {
	for i := range mounts {
		if path.IsAbs(mounts[i].mountPath) {
			mounts[i].mountPath = path.Join(slinkyv1beta1.JailUpperDir, mounts[i].mountPath)
		}
	}
	return mounts
}

// controllerJail is the jail that slurmctld takes its users from. The jobs of a cluster run in a jail on all of its workers or on none,
// as one line of plugstack.conf has it.
func (c *composer) controllerJail() *slinkyv1beta1.Jail {
	own := c.jail(c.spec.SlurmNodes.Controller.Volumes.Jail, controllerPath+".volumes.jail")
	without := ""
	first, _ := c.jailNodeSet()
	named := own != nil
	for _, set := range c.out.Components.NodeSets {
		switch {
		case c.held(set):
		case set.Spec.Jail == nil:
			without = set.Name
		case own == nil, !named && first != "" && set.Labels[LabelNodeSet] == first:
			own = set.Spec.Jail
		}
	}
	if own != nil && without != "" {
		c.fail("spec.volumeSources", "workers %s have no jail and others do; add a source called %s, or name one in %s",
			without, jailSource, controllerPath+".volumes.jail")
	}
	return own
}

// memoryDir is a tmpfs for jobs, in which prologs make a directory for each job.
const memoryDir = "/mnt/memory"

// addMemory adds that tmpfs to a worker with a jail, unless the user mounts something there. It counts as memory of the pod.
func (s *storage) addMemory(jail *slinkyv1beta1.Jail, limit *resource.Quantity) {
	const name = "in-memory"
	at := slinkyv1beta1.JailUpperDir + memoryDir
	if jail == nil || slices.ContainsFunc(s.mounts, func(m corev1.VolumeMount) bool {
		return path.Clean(m.MountPath) == at || path.Clean(m.MountPath) == slinkyv1beta1.JailDir+memoryDir
	}) {
		return
	}
	source := &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}
	if limit != nil && !limit.IsZero() {
		source.SizeLimit = limit
	}
	s.volumes = append(s.volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: source}})
	s.mounts = append(s.mounts, corev1.VolumeMount{Name: name, MountPath: at})
}

// addJailMounts adds mounts inside of a jail; without one they have no place.
func (f *findings) addJailMounts(s *storage, jail *slinkyv1beta1.Jail, claims bool, mounts ...mount) {
	if jail != nil {
		f.add(s, claims, inJail(mounts)...)
		return
	}
	for _, m := range mounts {
		f.ignore(true, m.path+" (without a jail)")
	}
}
