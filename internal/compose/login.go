// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/sshd"
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

// Users log in to the workers of a cluster with a jail, from its login pods and from each other. All these pods have the same
// host keys, and in the jail the same homes, so that a user's own key pair is enough.
const (
	// usersDir is where workers have the users of the login pods, with their keys.
	usersDir = "/var/lib/extrausers"
	// rootKeysDir has the keys of root in a file called root.
	rootKeysDir = "/etc/ssh/authorized_keys.d"
	// sshHostsVariable has the names of hosts for which the host keys of login pods and workers are valid: lists of patterns as in
	// sshd(8), SSH_KNOWN_HOSTS FILE FORMAT, separated by blanks. The entrypoints write ssh_known_hosts from it.
	sshHostsVariable = "COXSWAIN_SSH_HOSTS"
)

// workerSSHDConfig accepts the keys that the login pods accept, beside those in the jail. A file of a mounted ConfigMap
// changes in running pods; sshd trusts a command rather than a directory that the kubelet fills.
const workerSSHDConfig = `AuthorizedKeysCommand /usr/bin/cat ` + usersDir + `/authorized_keys.%u
AuthorizedKeysCommandUser nobody
Match User root
AuthorizedKeysCommand /usr/bin/cat ` + rootKeysDir + `/root
`

// loginSet is the LoginSet of a cluster, with only what its names follow from.
func loginSet(cluster *nebiusv1.SlurmCluster) *slinkyv1beta1.LoginSet {
	return &slinkyv1beta1.LoginSet{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.LoginSetName()}}
}

// sshdConfig selects the sshd_config in a ConfigMap; nil without a name.
func sshdConfig(configMap string) *corev1.ConfigMapKeySelector {
	if configMap == "" {
		return nil
	}
	return &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}, Key: sshd.ConfigFile}
}

// useSSHDConfig lets the sshd of workers have the sshd_config of that ConfigMap. The path is that of the field.
func (w *workers) useSSHDConfig(f *findings, configMap, path string) {
	if f.ignore(configMap != "" && w.jail == nil, path+" (without a jail)"); w.jail != nil {
		w.sshdConfig = sshdConfig(configMap)
	}
}

// addSSH runs sshd on workers with a jail. Without one they share no homes with the login pods, and so no keys.
func (w *workers) addSSH(cluster *nebiusv1.SlurmCluster) slinkyv1beta1.NodeSetSSH {
	if w.jail == nil {
		return slinkyv1beta1.NodeSetSSH{}
	}
	login := loginSet(cluster)
	keys := login.SSHHostKeysName()
	if own := cluster.Spec.Secrets.SSHDKeysName; own != "" {
		keys = own
	}
	const rootKeysVolume = "ssh-root-keys"
	// The kubelet reports a Secret that lacks one; a mount of a key that is not there would be a directory.
	var items []corev1.KeyToPath
	for _, file := range sshd.HostKeyFiles() {
		items = append(items, corev1.KeyToPath{Key: file, Path: file})
		w.container.VolumeMounts = append(w.container.VolumeMounts,
			corev1.VolumeMount{Name: hostKeysVolume, MountPath: "/etc/ssh/" + file, SubPath: file, ReadOnly: true})
	}
	w.pod.Volumes = append(w.pod.Volumes,
		corev1.Volume{Name: hostKeysVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: keys, DefaultMode: new(int32(0o600)), Items: items,
		}}},
		// Optional, since a mistake in the users of the login pods must not keep workers from starting.
		corev1.Volume{Name: rootKeysVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: login.SSHConfigName()}, Optional: new(true),
			Items: []corev1.KeyToPath{{Key: "authorized_keys", Path: "root"}},
		}}},
	)
	w.container.VolumeMounts = append(w.container.VolumeMounts, corev1.VolumeMount{Name: rootKeysVolume, MountPath: rootKeysDir, ReadOnly: true})
	w.container.Env = append(w.container.Env, sshHosts(cluster))
	return slinkyv1beta1.NodeSetSSH{Enabled: true, ExtraSshdConfig: workerSSHDConfig, SshdConfigRef: w.sshdConfig, SssdConfRef: w.sssd}
}

// sshHosts are the names of login pods and workers: those without a dot, which DNS looks for below the Services of the cluster
// first, and those below the Services. A colon stands in addresses of IPv6, and in front of ports that are forwarded.
func sshHosts(cluster *nebiusv1.SlurmCluster) corev1.EnvVar {
	workers := slinkyv1beta1.NodeSet{Spec: slinkyv1beta1.NodeSetSpec{ControllerRef: slinkyv1beta1.ObjectReference{Name: cluster.ControllerName()}}}
	lists := []string{"*,!*.*,!*:*"}
	for _, service := range []string{workers.WorkerServiceName(), loginSet(cluster).PodServiceName()} {
		domain := "*." + service + "." + cluster.Namespace
		lists = append(lists, domain+","+domain+".svc,"+domain+".svc.*")
	}
	return corev1.EnvVar{Name: sshHostsVariable, Value: strings.Join(lists, " ")}
}
