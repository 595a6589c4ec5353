// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pod holds what the pods of all components have in common: users, security contexts, well-known paths,
// sidecars, and the metadata and overlays that a pod template brings.
package pod

import (
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// Users of the images' processes.
const (
	// SlurmUser is the name of SlurmUser in the images, and SlurmUID its user and group id.
	SlurmUser = "slurm"
	SlurmUID  = int64(401)
	// NobodyUID is the user and group id of slurmrestd, which refuses to run as root or SlurmUser.
	NobodyUID = int64(65534)
)

// EtcSlurm is where every daemon finds its configuration and keys; EtcVolume is the volume there.
const (
	EtcSlurm  = "/etc/slurm"
	EtcVolume = "slurm-etc"
)

// Names of files in EtcSlurm.
const (
	SlurmKeyFile = "slurm.key"
	SlurmKeySet  = "slurm.jwks"
	JwtKeyFile   = "jwt.key"
	JwksFile     = "jwks.json"
)

// BusySeconds is the timeout of every probe, in seconds. Where jobs have all processors a daemon answers late; Kubernetes' default
// of one second has the kubelet restart it, which ends a worker's jobs.
const BusySeconds = 10

// Restricted is the container security context of everything that needs no privilege: the "restricted" level of the Pod
// Security Standards.
func Restricted(uid int64) *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsNonRoot:             new(true),
		RunAsUser:                new(uid),
		RunAsGroup:               new(uid),
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// RestrictedPod is the pod security context that goes with Restricted.
func RestrictedPod(uid int64) *corev1.PodSecurityContext {
	return &corev1.PodSecurityContext{
		RunAsNonRoot:   new(true),
		RunAsUser:      new(uid),
		RunAsGroup:     new(uid),
		FSGroup:        new(uid),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// EmptyDir is a volume that lives as long as its pod; in memory when inMemory is true.
func EmptyDir(name string, inMemory bool) corev1.Volume {
	source := &corev1.EmptyDirVolumeSource{}
	if inMemory {
		source.Medium = corev1.StorageMediumMemory
	}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: source}}
}

// TmpVolume is the name of the volume at /tmp, which daemons with a read-only root file system write to.
const TmpVolume = "tmp"

// Tmp is the volume at /tmp, and TmpMount its mount.
func Tmp() corev1.Volume { return EmptyDir(TmpVolume, false) }

// TmpMount mounts the volume that Tmp makes.
func TmpMount() corev1.VolumeMount { return corev1.VolumeMount{Name: TmpVolume, MountPath: "/tmp"} }

// SecretItem projects one key of a Secret as a file.
func SecretItem(ref corev1.SecretKeySelector, file string) corev1.VolumeProjection {
	return corev1.VolumeProjection{Secret: &corev1.SecretProjection{
		LocalObjectReference: ref.LocalObjectReference,
		Items:                []corev1.KeyToPath{{Key: ref.Key, Path: file}},
	}}
}

// SlurmKey projects the auth/slurm key, and the set of keys beside it in the same Secret where there is one. The kubelet
// writes both anew in running pods when the Secret changes.
func SlurmKey(ref corev1.SecretKeySelector) []corev1.VolumeProjection {
	set := ref
	set.Key = slinkyv1beta1.SlurmKeySetName
	optional := SecretItem(set, SlurmKeySet)
	optional.Secret.Optional = new(true)
	return []corev1.VolumeProjection{SecretItem(ref, SlurmKeyFile), optional}
}

// Projected is a volume made of several sources with one file mode.
func Projected(name string, mode int32, sources ...corev1.VolumeProjection) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{DefaultMode: new(mode), Sources: sources},
	}}
}

// ConfigMapItem projects one key of a ConfigMap as a file.
func ConfigMapItem(ref corev1.ConfigMapKeySelector, file string) corev1.VolumeProjection {
	return corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
		LocalObjectReference: ref.LocalObjectReference,
		Items:                []corev1.KeyToPath{{Key: ref.Key, Path: file}},
	}}
}
