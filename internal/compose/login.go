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
	node.SSHD.AppArmorProfile = c.confined(node.SSHD.AppArmorProfile)
	limits := c.limitsConf(node.SSHD.SecurityLimitsConfig, loginPath+".sshd.securityLimitsConfig")
	node.SSHD.SecurityLimitsConfig = ""
	container := c.container(node.SSHD, loginPath+".sshd", withoutCPU)
	container.Env = append(append(container.Env, c.clusterType()), limits...)
	pod := c.podSpec(node.SlurmNode, node.HostUsers, node.SSHD, loginPath)
	var disk storage
	c.add(&disk, false, c.clusterMounts(node.Volumes.CustomMounts, loginPath+".volumes.customMounts")...)
	jail := c.jail(node.Volumes.Jail, loginPath+".volumes.jail")
	c.addJailMounts(&disk, jail, false, c.clusterMounts(node.Volumes.JailSubMounts, loginPath+".volumes.jailSubMounts")...)
	if node.SSSDConfSecretRefName != "" {
		disk.addLDAPCA(node.SSSDLdapCAConfigMapRefName)
	}
	pod.Volumes, container.VolumeMounts = disk.volumes, disk.mounts
	if jail != nil {
		container.Env = append(container.Env, sshHosts(c.cluster))
	}
	c.addIsolation(&container, jail, node.UserIsolation)
	if name := c.spec.Secrets.SSHDKeysName; name != "" {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: hostKeysVolume, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: name},
		}})
	}
	if node.SSSDConfSecretRefName != "" {
		c.addSSSDDebugLevel(&container, node.SSSDDebugLevel, loginPath+".sssdDebugLevel")
	}
	munge := c.munge(node.Munge, loginPath+".munge", &pod)
	out := &slinkyv1beta1.LoginSet{
		ObjectMeta: c.meta(c.cluster.LoginSetName(), "login"),
		Spec: slinkyv1beta1.LoginSetSpec{
			ControllerRef: c.controllerRef(),
			Replicas:      new(c.unlessDownscaled(node.Size)),
			// Users and workers reach the login nodes by their names.
			Workload:              slinkyv1beta1.LoginWorkloadStatefulSet,
			Login:                 containerOverlay(container),
			Jail:                  jail,
			Munge:                 munge,
			Template:              podTemplate(pod, nil),
			SshdConfigRef:         sshdConfig(node.SSHDConfigMapRefName),
			SssdConfRef:           sssdConf(node.SSSDConfSecretRefName),
			RootSSHAuthorizedKeys: c.rootKeys(node.SSHRootPublicKeys),
			Users:                 node.Users,
		},
	}
	return out
}

// hostKeysVolume is the volume of the ssh host keys in the pods that the LoginSet makes. Another Secret takes the place of
// the generated one there; the names of its keys are the same for both predecessors.
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

// clusterType returns the variable with the kind of the cluster for login and worker pods, as Soperator has it:
// docs/contributors/predecessors/soperator-objects.md#variables-of-workers.
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
