// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package loginset

import (
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
	"github.com/coxswain-hpc/coxswain/internal/render/sshd"
)

// sshConfigMap holds sshd_config and root's authorized_keys.
func sshConfigMap(l *slinkyv1beta1.LoginSet, set label.Set) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: pod.ObjectMeta(l, l.SSHConfigName(), set),
		Data: map[string]string{
			sshd.ConfigFile:   sshdConfig(l),
			"authorized_keys": "### Coxswain: spec.rootSshAuthorizedKeys ###\n" + sshd.Terminated(l.Spec.RootSSHAuthorizedKeys),
		},
	}
}

// sshdConfig is /etc/ssh/sshd_config of the login pods.
func sshdConfig(l *slinkyv1beta1.LoginSet) string {
	generated := []string{"UsePAM yes", "X11Forwarding yes", "Subsystem sftp internal-sftp"}
	if len(l.Spec.Users) > 0 {
		// A command rather than a file, since sshd distrusts the permissions of directories that the kubelet fills. It
		// reads the keys anew at each login, so that a changed list counts without a restart.
		generated = append(generated, "AuthorizedKeysCommand /usr/bin/cat "+usersDir+"/"+keyPrefix+"%u", "AuthorizedKeysCommandUser nobody")
	}
	return sshd.Config(l.Spec.ExtraSshdConfig, generated...)
}
