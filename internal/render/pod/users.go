// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// The volume in which a daemon finds the users of its cluster, and where libnss-extrausers looks for them.
const (
	usersVolume = "users"
	usersDir    = "/var/lib/extrausers"
)

// The volume with the lists of users of LoginSets.
const (
	listsVolume = "listed-users"
	listsDir    = "/mnt/listed-users"
)

// AddUsers adds a sidecar that shows the first container of a pod the users of the jail, and behind them those of spec.users of
// LoginSets. Without a jail, which is nil then, and without such users it adds nothing. The image has program jail, and the sidecar
// runs as uid. The container does not mount the jail itself: the owner of that tree cannot make it wait or read another file. The error
// joins problem.Problems.
func AddUsers(spec *corev1.PodSpec, jail *slinkyv1beta1.Jail, loginSets []slinkyv1beta1.LoginSet, image string, uid int64) error {
	lists := listsOf(loginSets)
	if jail == nil && len(lists) == 0 {
		return nil
	}
	sidecar := corev1.Container{
		Name:            "users",
		Image:           image,
		Command:         []string{"jail", "users", "--root", "", "--extrausers", usersDir},
		RestartPolicy:   new(corev1.ContainerRestartPolicyAlways),
		SecurityContext: Restricted(uid),
	}
	if jail != nil {
		volume, err := Jail(jail)
		if err != nil {
			return err
		}
		readOnly(&volume.VolumeSource)
		spec.Volumes = append(spec.Volumes, volume)
		sidecar.Command[3] = slinkyv1beta1.JailDir
		sidecar.VolumeMounts = append(sidecar.VolumeMounts, corev1.VolumeMount{Name: JailVolume, MountPath: slinkyv1beta1.JailDir, ReadOnly: true})
	}
	if len(lists) > 0 {
		spec.Volumes = append(spec.Volumes, Projected(listsVolume, 0o644, lists...))
		sidecar.Command = append(sidecar.Command, "--listed", listsDir)
		sidecar.VolumeMounts = append(sidecar.VolumeMounts, corev1.VolumeMount{Name: listsVolume, MountPath: listsDir, ReadOnly: true})
	}
	spec.Volumes = append(spec.Volumes, EmptyDir(usersVolume, true))
	sidecar.VolumeMounts = append(sidecar.VolumeMounts, corev1.VolumeMount{Name: usersVolume, MountPath: usersDir})
	spec.InitContainers = append(spec.InitContainers, sidecar)
	daemon := &spec.Containers[0]
	daemon.VolumeMounts = append(daemon.VolumeMounts, corev1.VolumeMount{Name: usersVolume, MountPath: usersDir, ReadOnly: true})
	return nil
}

// listsOf are the passwd and group of each LoginSet with users, in a directory with its name. Keys and shadow stay where they are. No
// ConfigMap has to exist: it comes and goes with the users, and pods do not wait for it.
func listsOf(loginSets []slinkyv1beta1.LoginSet) []corev1.VolumeProjection {
	var out []corev1.VolumeProjection
	for _, l := range slices.SortedFunc(slices.Values(loginSets), func(a, b slinkyv1beta1.LoginSet) int { return cmp.Compare(a.Name, b.Name) }) {
		if len(l.Spec.Users) == 0 {
			continue
		}
		out = append(out, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: l.UsersName()},
			Items:                []corev1.KeyToPath{{Key: "passwd", Path: l.Name + "/passwd"}, {Key: "group", Path: l.Name + "/group"}},
			Optional:             new(true),
		}})
	}
	return out
}

// readOnly makes a volume read-only for the whole pod, where its kind allows that. Otherwise the kubelet gives the files of some kinds
// to the fsGroup of the pod, all of them.
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
