// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
)

// JailVolume is the volume that holds the jail.
const JailVolume = "jail"

// JailVariable has the path where the jail is mounted, for the entrypoints of slurmd and login.
const JailVariable = "COXSWAIN_JAIL"

// AddJail mounts the jail in a container of an otherwise complete pod; a nil jail adds nothing. What the container
// mounts below the jail moves beside it, from where the entrypoint mounts it into the jail: the kubelet would make
// directories in the shared file system. The error joins problem.Problems.
func AddJail(spec *corev1.PodSpec, container string, jail *slinkyv1beta1.Jail) error {
	if jail == nil {
		return nil
	}
	volume, err := Jail(jail)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == JailVolume }) {
		return problem.Errorf("spec.template.spec.volumes["+JailVolume+"]", slinkyv1beta1.ReasonInvalidSpec,
			"is the name of the volume of spec.jail; choose another one")
	}
	i := slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == container })
	if i < 0 {
		return nil
	}
	c := &spec.Containers[i]
	for j := range c.VolumeMounts {
		mount := &c.VolumeMounts[j]
		switch at := path.Clean(mount.MountPath); {
		case at == slinkyv1beta1.JailDir:
			return problem.Errorf("spec.jail", slinkyv1beta1.ReasonInvalidSpec,
				"volume %s is mounted at %s as well; leave that mount out", mount.Name, slinkyv1beta1.JailDir)
		case strings.HasPrefix(at, slinkyv1beta1.JailDir+"/"):
			mount.MountPath = slinkyv1beta1.JailUpperDir + strings.TrimPrefix(at, slinkyv1beta1.JailDir)
		}
	}
	spec.Volumes = append(spec.Volumes, volume)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: JailVolume, MountPath: slinkyv1beta1.JailDir})
	c.Env = append(c.Env, corev1.EnvVar{Name: JailVariable, Value: slinkyv1beta1.JailDir})
	return nil
}

// Jail is the volume of a jail. The error is a problem.Problem.
func Jail(jail *slinkyv1beta1.Jail) (corev1.Volume, error) {
	const at = "spec.jail.volumeSource"
	source, err := jail.VolumeSource.Decode()
	if err != nil {
		return corev1.Volume{}, problem.Errorf(at, slinkyv1beta1.ReasonInvalidSpec, "%v", err)
	}
	if n := members(source); n != 1 {
		return corev1.Volume{}, problem.Errorf(at, slinkyv1beta1.ReasonInvalidSpec,
			"must have exactly one member that says what the volume is, such as persistentVolumeClaim or nfs; it has %d", n)
	}
	return corev1.Volume{Name: JailVolume, VolumeSource: *source}, nil
}

// members counts the members of a volume source that are set.
func members(source *corev1.VolumeSource) int {
	var fields map[string]json.RawMessage
	data, err := json.Marshal(source)
	if err != nil || json.Unmarshal(data, &fields) != nil {
		return 0
	}
	return len(fields)
}
