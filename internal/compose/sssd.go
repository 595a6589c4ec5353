// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
)

// sssdOptionsVariable has the options with which the entrypoints of login pods and workers start SSSD, see sssd(8).
const sssdOptionsVariable = "SSSD_OPTIONS"

// sssdConf selects the sssd.conf in a Secret; nil without a name.
func sssdConf(secret string) *corev1.SecretKeySelector {
	if secret == "" {
		return nil
	}
	return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: "sssd.conf"}
}

// addSSSDDebugLevel starts the SSSD of a container with that debug level. Zero leaves what sssd.conf sets. path is the field's.
func (f *findings) addSSSDDebugLevel(container *corev1.Container, level int32, path string) {
	if level == 0 {
		return
	}
	added := pod.AddEnv(container, corev1.EnvVar{Name: sssdOptionsVariable, Value: "--debug-level=" + strconv.Itoa(int(level))})
	f.ignore(!added, path+" (with "+sssdOptionsVariable+" in customEnv)")
}

// addLDAPCA mounts a ConfigMap with certificates. The kubelet reports one that does not exist.
func (s *storage) addLDAPCA(configMap string) {
	if configMap == "" {
		return
	}
	const name = "sssd-ldap-ca"
	s.volumes = append(s.volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: configMap},
	}}})
	s.mounts = append(s.mounts, corev1.VolumeMount{Name: name, MountPath: pod.LDAPCADir, ReadOnly: true})
}

// controllerSSSD composes SSSD beside slurmctld and slurmrestd.
func (c *composer) controllerSSSD(spec *corev1.PodSpec) *slinkyv1beta1.SSSD {
	const at = controllerPath + ".sssd"
	node := &c.spec.SlurmNodes.Controller
	if node.SSSDConfSecretRefName == "" {
		const without = " (without sssdConfSecretRefName)"
		c.ignore(node.SSSD != nil, at+without)
		c.ignore(node.SSSDDebugLevel != 0, controllerPath+".sssdDebugLevel"+without)
		c.ignore(node.SSSDLdapCAConfigMapRefName != "", controllerPath+".sssdLdapCAConfigMapRefName"+without)
		return nil
	}
	c.besideSSSD(spec, controllerPath)
	var container corev1.Container
	if node.SSSD != nil {
		c.ignore(node.SSSD.Port != 0, at+".port")
		container = c.container(*node.SSSD, at, withoutCPU)
		addPullSecrets(spec, node.SSSD.ImagePullSecrets)
	}
	c.addSSSDDebugLevel(&container, node.SSSDDebugLevel, controllerPath+".sssdDebugLevel")
	out := &slinkyv1beta1.SSSD{Container: containerOverlay(container), ConfRef: *sssdConf(node.SSSDConfSecretRefName)}
	if name := node.SSSDLdapCAConfigMapRefName; name != "" {
		out.AuthoritiesRef = &corev1.LocalObjectReference{Name: name}
	}
	return out
}

// besideSSSD refuses an init container with the name of SSSD's where SSSD runs: it would be laid over it.
func (c *composer) besideSSSD(spec *corev1.PodSpec, path string) {
	named := func(i corev1.Container) bool { return i.Name == pod.SSSDName }
	if c.spec.SlurmNodes.Controller.SSSDConfSecretRefName != "" && slices.ContainsFunc(spec.InitContainers, named) {
		c.fail(path+".customInitContainers", "an entry is called %s, as the sidecar of sssdConfSecretRefName of the controller is; give it another name", pod.SSSDName)
	}
}

// addSSSD runs SSSD on the workers of a NodeSet. It runs beside sshd, and so on workers with a jail only.
func (w *workers) addSSSD(f *findings, spec *nebiusv1alpha1.NodeSetSpec) {
	const conf, level, authority = "spec.sssdConfSecretRefName", "spec.sssdDebugLevel", "spec.sssdLdapCAConfigMapRefName"
	var without string
	switch {
	case w.jail == nil:
		without = " (without a jail)"
		f.ignore(spec.SSSDConfSecretRefName != "", conf+without)
	case spec.SSSDConfSecretRefName == "":
		without = " (without sssdConfSecretRefName)"
	default:
		w.sssd = sssdConf(spec.SSSDConfSecretRefName)
		f.addSSSDDebugLevel(&w.container, spec.SSSDDebugLevel, level)
		w.disk.addLDAPCA(spec.SSSDLdapCAConfigMapRefName)
		return
	}
	f.ignore(spec.SSSDDebugLevel != 0, level+without)
	f.ignore(spec.SSSDLdapCAConfigMapRefName != "", authority+without)
}
