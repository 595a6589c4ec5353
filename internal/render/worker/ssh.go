// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
	"github.com/coxswain-hpc/coxswain/internal/render/sshd"
)

// Names of volumes and of the port by which users log in to workers.
const (
	sshVolume  = "ssh-config"
	sssdVolume = "sssd-conf"
	sshPort    = "ssh"
)

// SSHConfig is the ConfigMap with the workers' sshd_config; their host keys are made by the image.
func SSHConfig(n *slinkyv1beta1.NodeSet) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: pod.ObjectMeta(n, n.SSHConfigName(), Labels(n)),
		Data:       map[string]string{sshd.ConfigFile: sshdConfig(n)},
	}
}

// sshdConfig is /etc/ssh/sshd_config of the workers.
func sshdConfig(n *slinkyv1beta1.NodeSet) string {
	return sshd.Config(n.Spec.SSH.ExtraSshdConfig, "UsePAM yes", "Subsystem sftp internal-sftp", "AuthenticationMethods publickey password")
}

// addSshd adds to a worker what it needs for logins. The image starts sshd and SSSD where they have a configuration.
func addSshd(in Input, spec *corev1.PodSpec) {
	ssh := in.NodeSet.Spec.SSH
	if !ssh.Enabled {
		return
	}
	slurmd := &spec.Containers[0]
	slurmd.Ports = append(slurmd.Ports, corev1.ContainerPort{Name: sshPort, ContainerPort: slinkyv1beta1.SSHPort, Protocol: corev1.ProtocolTCP})
	slurmd.VolumeMounts = append(slurmd.VolumeMounts, corev1.VolumeMount{Name: sshVolume, MountPath: "/etc/ssh/sshd_config", SubPath: "sshd_config", ReadOnly: true})
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: sshVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: in.NodeSet.SSHConfigName()}, DefaultMode: new(int32(0o600)),
	}}})
	if ref := ssh.SssdConfRef; ref != nil && ref.Name != "" {
		slurmd.VolumeMounts = append(slurmd.VolumeMounts, corev1.VolumeMount{Name: sssdVolume, MountPath: "/etc/sssd/sssd.conf", SubPath: "sssd.conf", ReadOnly: true})
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: sssdVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: ref.Name, DefaultMode: new(int32(0o600)), Items: []corev1.KeyToPath{{Key: ref.Key, Path: "sssd.conf"}},
		}}})
	}
}

// sshDigests are the annotations that say what a worker's logins were configured with. A changed sssd.conf is that of new
// workers; it replaces none.
func sshDigests(in Input) map[string]string {
	out := map[string]string{}
	if in.NodeSet.Spec.SSH.Enabled {
		out[slinkyv1beta1.AnnotationSshdConfHash] = label.Digest(map[string][]byte{sshd.ConfigFile: []byte(sshdConfig(in.NodeSet))})
		if in.SssdDigest != "" {
			out[slinkyv1beta1.AnnotationSssdConfHash] = in.SssdDigest
		}
	}
	return out
}
