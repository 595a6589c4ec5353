// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// The volume in which a daemon finds the users of the jail, and where libnss-extrausers looks for them.
const (
	usersVolume = "users"
	usersDir    = "/var/lib/extrausers"
)

// AddUsers adds a sidecar that shows the first container of a pod the users of a jail; a nil jail adds nothing. The image has program jail,
// and the sidecar runs as uid. The container has no part in the jail itself: who owns that tree cannot make it wait or read another file.
// The error joins problem.Problems.
func AddUsers(spec *corev1.PodSpec, jail *slinkyv1beta1.Jail, image string, uid int64) error {
	if jail == nil {
		return nil
	}
	volume, err := Jail(jail)
	if err != nil {
		return err
	}
	readOnly(&volume.VolumeSource)
	daemon := &spec.Containers[0]
	daemon.VolumeMounts = append(daemon.VolumeMounts, corev1.VolumeMount{Name: usersVolume, MountPath: usersDir, ReadOnly: true})
	spec.Volumes = append(spec.Volumes, volume, EmptyDir(usersVolume, true))
	spec.InitContainers = append(spec.InitContainers, corev1.Container{
		Name:            "users",
		Image:           image,
		Command:         []string{"jail", "users", "--root", slinkyv1beta1.JailDir, "--extrausers", usersDir},
		RestartPolicy:   new(corev1.ContainerRestartPolicyAlways),
		SecurityContext: Restricted(uid),
		VolumeMounts: []corev1.VolumeMount{
			{Name: JailVolume, MountPath: slinkyv1beta1.JailDir, ReadOnly: true},
			{Name: usersVolume, MountPath: usersDir},
		},
	})
	return nil
}

// readOnly makes a volume read-only for the whole pod, where its kind can be. Otherwise the kubelet gives the files of some kinds to the
// fsGroup of the pod, all of them.
func readOnly(volume *corev1.VolumeSource) {
	switch {
	case volume.PersistentVolumeClaim != nil:
		volume.PersistentVolumeClaim.ReadOnly = true
	case volume.NFS != nil:
		volume.NFS.ReadOnly = true
	case volume.CSI != nil:
		volume.CSI.ReadOnly = new(true)
	case volume.CephFS != nil:
		volume.CephFS.ReadOnly = true
	case volume.ISCSI != nil:
		volume.ISCSI.ReadOnly = true
	case volume.FC != nil:
		volume.FC.ReadOnly = true
	case volume.RBD != nil:
		volume.RBD.ReadOnly = true
	case volume.FlexVolume != nil:
		volume.FlexVolume.ReadOnly = true
	case volume.Glusterfs != nil:
		volume.Glusterfs.ReadOnly = true
	case volume.AzureFile != nil:
		volume.AzureFile.ReadOnly = true
	case volume.AzureDisk != nil:
		volume.AzureDisk.ReadOnly = new(true)
	}
}
