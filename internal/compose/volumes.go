// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
)

// storage is what volumes and mounts add to a pod.
type storage struct {
	volumes []corev1.Volume
	mounts  []corev1.VolumeMount
	claims  []corev1.PersistentVolumeClaim
}

// mount is one mount in either generation's form.
type mount struct {
	name, mountPath, subPath string
	readOnly                 bool
	// Either source or claim is given.
	source *corev1.VolumeSource
	claim  *embedded.PersistentVolumeClaimSpec
	// path is where the user wrote it, and claimPath where the claim stands.
	path, claimPath string
}

// readVolumeSources decodes spec.volumeSources, used or not.
func (c *composer) readVolumeSources() {
	c.sources = map[string]corev1.VolumeSource{}
	for i := range c.spec.VolumeSources {
		source := &c.spec.VolumeSources[i]
		at := "spec.volumeSources[" + source.Name + "]"
		if decoded := c.volumeSource(&source.VolumeSource, at); decoded != nil {
			c.sources[source.Name] = *decoded
		}
	}
}

// volumeSource decodes a volume source, which must have exactly one member.
func (f *findings) volumeSource(source *embedded.VolumeSource, at string) *corev1.VolumeSource {
	decoded, err := source.Decode()
	if err != nil {
		f.fail(at, "%v", err)
		return nil
	}
	members := 0
	if decoded != nil {
		members = len(fieldsOf(*decoded))
	}
	if members != 1 {
		f.fail(at, "must have exactly one member that says what the volume is, such as persistentVolumeClaim or nfs; it has %d", members)
		return nil
	}
	return decoded
}

// source resolves a volumeSourceName.
func (c *composer) source(name, at string) *corev1.VolumeSource {
	if source, ok := c.sources[name]; ok {
		return source.DeepCopy()
	}
	if !slices.ContainsFunc(c.spec.VolumeSources, func(s nebiusv1.VolumeSource) bool { return s.Name == name }) {
		c.fail(at, "there is no %q in spec.volumeSources", name)
	}
	return nil
}

// clusterMounts turns the mounts of a component of the SlurmCluster into the common form.
func (c *composer) clusterMounts(mounts []nebiusv1.NodeVolumeMount, at string) []mount {
	out := make([]mount, 0, len(mounts))
	for i, m := range mounts {
		where := index(at, i)
		next := mount{
			name: m.Name, mountPath: m.MountPath, subPath: m.SubPath, readOnly: m.ReadOnly,
			claim: m.VolumeClaimTemplateSpec, path: where, claimPath: where + ".volumeClaimTemplateSpec",
		}
		switch {
		case (m.VolumeSourceName == "") == (m.VolumeClaimTemplateSpec == nil):
			c.fail(where, "exactly one of volumeSourceName and volumeClaimTemplateSpec must be given")
			continue
		case m.VolumeSourceName != "":
			if next.source = c.source(m.VolumeSourceName, where+".volumeSourceName"); next.source == nil {
				continue
			}
		}
		out = append(out, next)
	}
	return out
}

// spool is the mount of a daemon's spool directory; none if it is left to the component.
func (c *composer) spool(volume *nebiusv1.NodeVolume, name, mountPath, at string) []mount {
	if volume == nil {
		return nil
	}
	return c.clusterMounts([]nebiusv1.NodeVolumeMount{{
		Name: name, MountPath: mountPath, VolumeSourceName: volume.VolumeSourceName, VolumeClaimTemplateSpec: volume.VolumeClaimTemplateSpec,
	}}, at)
}

// add puts mounts into the storage of a pod. claims is true if the component can have claims of its own per pod.
// If not, a mount that needs one is left out and listed as a field without effect.
func (f *findings) add(s *storage, claims bool, mounts ...mount) {
	for _, m := range mounts {
		if m.claim != nil && !claims {
			f.ignore(true, m.claimPath)
			continue
		}
		if !f.checkMount(s, m) {
			continue
		}
		s.mounts = append(s.mounts, corev1.VolumeMount{Name: m.name, MountPath: m.mountPath, SubPath: m.subPath, ReadOnly: m.readOnly})
		if m.claim == nil {
			s.volumes = append(s.volumes, corev1.Volume{Name: m.name, VolumeSource: *m.source})
			continue
		}
		spec, err := m.claim.Decode()
		if err != nil {
			f.fail(m.claimPath, "%v", err)
			continue
		}
		if spec == nil {
			spec = &corev1.PersistentVolumeClaimSpec{}
		}
		s.claims = append(s.claims, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: m.name}, Spec: *spec})
	}
}

// checkMount finds what Kubernetes would refuse in the pod, where its message would not name the user's field.
func (f *findings) checkMount(s *storage, m mount) bool {
	before := len(f.problems)
	if len(validation.IsDNS1123Label(m.name)) > 0 {
		f.fail(m.path+".name", "must have at most 63 lower case letters, digits and dashes: it becomes the name of a volume")
	}
	if slices.ContainsFunc(s.mounts, func(other corev1.VolumeMount) bool { return other.Name == m.name }) {
		f.fail(m.path+".name", "another mount of the same pods is called %q, too", m.name)
	}
	if !path.IsAbs(m.mountPath) || strings.Contains(m.mountPath, ":") {
		f.fail(m.path+".mountPath", "must be an absolute path without colons")
	}
	if slices.ContainsFunc(s.mounts, func(other corev1.VolumeMount) bool { return other.MountPath == m.mountPath }) {
		f.fail(m.path+".mountPath", "something else is mounted at %s", m.mountPath)
	}
	if path.IsAbs(m.subPath) || slices.Contains(strings.Split(m.subPath, "/"), "..") {
		f.fail(m.path+".subPath", "must be a relative path without ..")
	}
	return len(f.problems) == before
}

// addSharedMemory mounts a tmpfs of that size at /dev/shm; it counts as memory of the pod.
func (s *storage) addSharedMemory(size *resource.Quantity) {
	const name = "dev-shm"
	if size == nil {
		return
	}
	s.volumes = append(s.volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: size},
	}})
	s.mounts = append(s.mounts, corev1.VolumeMount{Name: name, MountPath: "/dev/shm"})
}
