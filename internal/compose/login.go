// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

const loginPath = "spec.slurmNodes.login"

// login composes the login pods. There is a LoginSet even without any pods, because it owns their host keys. If these changed,
// the ssh clients of users would warn of an attack.
func (c *composer) login() *slinkyv1beta1.LoginSet {
	node := c.spec.SlurmNodes.Login
	c.dropFilter(node.Size == 0, &node.K8sNodeFilterName, loginPath)
	container := c.container(node.SSHD, loginPath+".sshd", withoutCPU)
	container.Env = append(container.Env, c.clusterType())
	pod := c.podSpec(node.SlurmNode, node.HostUsers, node.SSHD, loginPath)
	var disk storage
	c.add(&disk, false, c.clusterMounts(node.Volumes.CustomMounts, loginPath+".volumes.customMounts")...)
	pod.Volumes, container.VolumeMounts = disk.volumes, disk.mounts
	if name := c.spec.Secrets.SSHDKeysName; name != "" {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: hostKeysVolume, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: name},
		}})
	}
	out := &slinkyv1beta1.LoginSet{
		ObjectMeta: c.meta(c.cluster.LoginSetName(), "login"),
		Spec: slinkyv1beta1.LoginSetSpec{
			ControllerRef:         c.controllerRef(),
			Replicas:              new(c.unlessDownscaled(node.Size)),
			Login:                 containerOverlay(container),
			Template:              podTemplate(pod, nil),
			RootSSHAuthorizedKeys: c.rootKeys(node.SSHRootPublicKeys),
			Users:                 node.Users,
		},
	}
	if name := node.SSSDConfSecretRefName; name != "" {
		out.Spec.SssdConfRef = &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: "sssd.conf"}
	}
	return out
}

// hostKeysVolume is the volume of the ssh host keys in the pods that the LoginSet makes. Another Secret takes the place of
// the generated one there; the names of its keys are the same in both contracts.
const hostKeysVolume = "ssh-host-keys"

// rootKeys is the authorized_keys file of root.
func (c *composer) rootKeys(keys []string) string {
	var b strings.Builder
	for i, key := range keys {
		key = strings.TrimSuffix(key, "\n")
		if strings.ContainsAny(key, "\r\n\x00") {
			c.fail(index(loginPath+".sshRootPublicKeys", i), "must be one line; give each key an entry of its own")
			continue
		}
		if key != "" {
			b.WriteString(key + "\n")
		}
	}
	return b.String()
}

// clusterType tells what runs in login and worker pods which kind of cluster it is in, as the contract has it.
func (c *composer) clusterType() corev1.EnvVar {
	return corev1.EnvVar{Name: "SLURM_CLUSTER_TYPE", Value: string(c.spec.ClusterType)} //nolint:staticcheck // deprecated, and in effect all the same
}

// unlessDownscaled is the wanted number of pods, or none during maintenance.
func (c *composer) unlessDownscaled(size int32) int32 {
	if c.spec.Maintenance.Downscaled() {
		return 0
	}
	return size
}
