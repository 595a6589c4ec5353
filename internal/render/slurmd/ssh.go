// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmd

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
	"github.com/coxswain-hpc/coxswain/internal/render/sshd"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// Names of volumes and of the port by which users log in to workers.
const (
	sshVolume      = "ssh-config"
	sssdVolume     = "sssd-conf"
	hostKeysVolume = "ssh-host-keys"
	sshPort        = "ssh"
)

// SSHConfig is the ConfigMap with the files of the workers' sshd.
func SSHConfig(in Input) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: pod.ObjectMeta(in.NodeSet, in.NodeSet.SSHConfigName(), Labels(in.NodeSet)), Data: sshdFiles(in)}
}

// sshdFiles are the files of sshd on the workers.
func sshdFiles(in Input) map[string]string {
	return sshd.Config{
		Extra: in.NodeSet.Spec.SSH.ExtraSshdConfig, Own: in.SshdConfig,
		Defaults: []string{"Subsystem sftp internal-sftp", "AuthenticationMethods publickey password"}, Jail: in.NodeSet.Spec.Jail,
	}.Files()
}

// addSshd adds to a worker what it needs for logins. The image starts sshd and SSSD where they have a configuration.
func addSshd(in Input, spec *corev1.PodSpec) {
	ssh := in.NodeSet.Spec.SSH
	if !ssh.Enabled {
		return
	}
	slurmd := &spec.Containers[0]
	slurmd.Ports = append(slurmd.Ports, corev1.ContainerPort{Name: sshPort, ContainerPort: slinkyv1beta1.SSHPort, Protocol: corev1.ProtocolTCP})
	slurmd.Env = append(slurmd.Env, sshd.Source(ssh.SshdConfigRef)...)
	slurmd.VolumeMounts = append(slurmd.VolumeMounts, sshd.Mounts(sshVolume, sshdFiles(in))...)
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

// sshdConfigDigest is the digest of the user's own sshd_config; a new one makes a new revision; empty for none.
func (in Input) sshdConfigDigest() string {
	if in.SshdConfig == "" {
		return ""
	}
	return label.TextDigest(map[string]string{sshd.ConfigFile: in.SshdConfig})
}

// sshDigests are the annotations with digests of what a worker's logins were configured with. A changed sssd.conf is for new workers;
// it replaces none.
func sshDigests(in Input) map[string]string {
	out := map[string]string{}
	if in.NodeSet.Spec.SSH.Enabled {
		out[slinkyv1beta1.AnnotationSshdConfHash] = label.TextDigest(sshdFiles(in))
		if in.SssdDigest != "" {
			out[slinkyv1beta1.AnnotationSssdConfHash] = in.SssdDigest
		}
	}
	return out
}

// addHostKeys gives all workers of a NodeSet the same host keys, so that a worker that replaces another is the same host for ssh clients.
// Where the user mounts host keys, nothing is added.
func addHostKeys(n *slinkyv1beta1.NodeSet, spec *corev1.PodSpec) {
	c := slurmdOf(spec)
	if c == nil || !n.Spec.SSH.Enabled || mounts(c, sshd.HoldsHostKeys) {
		return
	}
	volume, keys := sshd.HostKeys(hostKeysVolume, n.SSHHostKeysName())
	c.VolumeMounts = append(c.VolumeMounts, keys...)
	spec.Volumes = append(spec.Volumes, volume)
}

// HostKeys returns the Secret with the host keys of the workers, and whether they have any.
func HostKeys(in Input) (render.Secret, bool) {
	p, err := Pod(in, workerpod.Place{}, "")
	used := err == nil && slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Secret != nil && v.Secret.SecretName == in.NodeSet.SSHHostKeysName()
	})
	return render.Secret{Name: in.NodeSet.SSHHostKeysName(), Content: render.SSHHostKeys}, used
}
