// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package login

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render/overlay"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
	"github.com/coxswain-hpc/coxswain/internal/render/sshd"
)

// Names of volumes.
const (
	sackdVolume   = "sackd-dir"
	configVolume  = "slurm-config"
	sshVolume     = "ssh-config"
	hostKeyVolume = "ssh-host-keys"
	sssdVolume    = "sssd-conf"
	usersVolume   = "users"
)

// initScript makes /etc/slurm from what is mounted. Files of a Secret cannot belong to the Slurm user while the pod runs as root, and
// sackd accepts only a key that belongs to that user.
const initScript = `set -eu
for file in /mnt/slurm/*; do
	case $file in
	*.key | *.jwks | */slurmdbd.conf) mode=0600 ;;
	*.conf) mode=0644 ;;
	*) continue ;;
	esac
	cp -L "$file" /mnt/etc/slurm/
	chmod "$mode" "/mnt/etc/slurm/${file##*/}"
done
chown -R 401:401 /mnt/etc/slurm
`

func initContainer(in Input, image string) (corev1.Container, error) {
	c, err := overlay.Container(corev1.Container{
		Name:    "initconf",
		Image:   image,
		Command: []string{"sh", "-c", initScript},
		Env:     []corev1.EnvVar{{Name: "SLURM_USER", Value: pod.SlurmUser}},
		VolumeMounts: []corev1.VolumeMount{
			{Name: pod.EtcVolume, MountPath: "/mnt/etc/slurm"},
			{Name: configVolume, MountPath: "/mnt/slurm", ReadOnly: true},
		},
	}, in.LoginSet.Spec.Initconf, "spec.initconf")
	if c.Image != image {
		asRoot(&c)
	}
	return c, err
}

// asRoot runs an image of the user's as root, unless the user sets otherwise: only root may read the key and give it to the
// Slurm user. The image of the login container does so by itself, and its template stays as it is, which restarts no pod.
func asRoot(c *corev1.Container) {
	if c.SecurityContext == nil {
		c.SecurityContext = &corev1.SecurityContext{}
	}
	if c.SecurityContext.RunAsUser == nil {
		c.SecurityContext.RunAsUser = new(int64(0))
	}
}

func loginContainer(in Input) (corev1.Container, error) {
	mounts := []corev1.VolumeMount{
		{Name: pod.EtcVolume, MountPath: pod.EtcSlurm, ReadOnly: true},
		{Name: sackdVolume, MountPath: "/run/slurm"},
	}
	mounts = append(mounts, sshd.Mounts(sshVolume, sshdFiles(in))...)
	mounts = append(mounts, corev1.VolumeMount{Name: sshVolume, MountPath: "/root/.ssh/authorized_keys", SubPath: "authorized_keys", ReadOnly: true})
	_, hostKeys := sshd.HostKeys(hostKeyVolume, in.LoginSet.SSHHostKeysName())
	mounts = append(mounts, hostKeys...)
	if in.LoginSet.Spec.SssdConfRef != nil {
		mounts = append(mounts, corev1.VolumeMount{Name: sssdVolume, MountPath: "/etc/sssd/sssd.conf", SubPath: "sssd.conf", ReadOnly: true})
	}
	if len(in.LoginSet.Spec.Users) > 0 {
		mounts = append(mounts, corev1.VolumeMount{Name: usersVolume, MountPath: usersDir, ReadOnly: true})
	}
	c, err := overlay.Container(corev1.Container{
		Name:            slinkyv1beta1.NameLogin,
		Image:           in.Images.Login(),
		Ports:           []corev1.ContainerPort{{Name: portName, ContainerPort: slinkyv1beta1.SSHPort, Protocol: corev1.ProtocolTCP}},
		SecurityContext: mountsJail(in.LoginSet.Spec.Jail),
		// The socket stays, and without its daemon the container ends. So it is probed only at the start: each probe is a process.
		StartupProbe: &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: pod.BusySeconds, FailureThreshold: 3600, ProbeHandler: corev1.ProbeHandler{
			Exec: &corev1.ExecAction{Command: []string{"test", "-S", "/run/slurm/sack.socket"}},
		}},
		Env:          sshd.Source(in.LoginSet.Spec.SshdConfigRef),
		VolumeMounts: mounts,
	}, in.LoginSet.Spec.Login, "spec.login")
	for _, e := range c.Env {
		if e.Name == sackdOptions && e.ValueFrom != nil {
			err = errors.Join(err, problem.Errorf("spec.login.env["+sackdOptions+"]", "InvalidSpec",
				"options are added to its value, so it must be given by value and not by valueFrom"))
		}
	}
	c.Env = withSackdOptions(c.Env, "--conf-server "+in.Controller.Endpoint())
	return c, err
}

// mountsJail lets the entrypoint mount the jail and what belongs into it. The entrypoint drops the right before it starts sshd.
func mountsJail(jail *slinkyv1beta1.Jail) *corev1.SecurityContext {
	if jail == nil {
		return nil
	}
	return &corev1.SecurityContext{
		Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}},
		// The profile of container runtimes refuses mount(2), whatever the capabilities.
		AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined},
	}
}

// sackdOptions is the variable with the command line of sackd.
const sackdOptions = "SACKD_OPTIONS"

// withSackdOptions puts options after those that the user gave sackd, and sorts the variables by name.
func withSackdOptions(env []corev1.EnvVar, options string) []corev1.EnvVar {
	out := make([]corev1.EnvVar, 0, len(env)+1)
	for _, e := range env {
		if e.Name == sackdOptions {
			options = strings.TrimSpace(e.Value + " " + options)
			continue
		}
		out = append(out, e)
	}
	out = append(out, corev1.EnvVar{Name: sackdOptions, Value: options})
	slices.SortStableFunc(out, func(a, b corev1.EnvVar) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func volumes(in Input) []corev1.Volume {
	l := in.LoginSet
	hostKeys, _ := sshd.HostKeys(hostKeyVolume, l.SSHHostKeysName())
	out := []corev1.Volume{
		pod.EmptyDir(pod.EtcVolume, true),
		pod.EmptyDir(sackdVolume, true),
		pod.Projected(configVolume, 0o600, pod.SlurmKey(*in.Controller.AuthSlurmRef())...),
		hostKeys,
		{Name: sshVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: l.SSHConfigName()}, DefaultMode: new(int32(0o600)),
		}}},
	}
	if ref := l.Spec.SssdConfRef; ref != nil {
		out = append(out, corev1.Volume{Name: sssdVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: ref.Name, DefaultMode: new(int32(0o600)), Items: []corev1.KeyToPath{{Key: ref.Key, Path: "sssd.conf"}},
		}}})
	}
	if len(l.Spec.Users) > 0 {
		out = append(out, usersFrom(l))
	}
	return out
}

// usersFrom mounts the whole ConfigMap, so that another user changes files and not the pods.
func usersFrom(l *slinkyv1beta1.LoginSet) corev1.Volume {
	return corev1.Volume{Name: usersVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: l.UsersName()},
	}}}
}
