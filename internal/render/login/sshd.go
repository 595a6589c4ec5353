// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package login

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
	"github.com/coxswain-hpc/coxswain/internal/render/sshd"
)

// sshConfigMap holds the files of sshd and root's authorized_keys.
func sshConfigMap(in Input, set label.Set) *corev1.ConfigMap {
	data := sshdFiles(in)
	data["authorized_keys"] = "### Coxswain: spec.rootSshAuthorizedKeys ###\n" + sshd.Terminated(in.LoginSet.Spec.RootSSHAuthorizedKeys)
	return &corev1.ConfigMap{ObjectMeta: pod.ObjectMeta(in.LoginSet, in.LoginSet.SSHConfigName(), set), Data: data}
}

// sshdFiles are the files of sshd on the login pods.
func sshdFiles(in Input) map[string]string {
	spec := &in.LoginSet.Spec
	config := sshd.Config{
		Extra: spec.ExtraSshdConfig, Own: in.SshdConfig, Defaults: []string{"X11Forwarding yes", "Subsystem sftp internal-sftp"}, Jail: spec.Jail,
	}
	if len(spec.Users) > 0 {
		// A command rather than a file, since sshd distrusts the permissions of directories that the kubelet fills. It
		// reads the keys anew at each login, so that a changed list counts without a restart.
		config.Keys = []string{"AuthorizedKeysCommand /usr/bin/cat " + usersDir + "/" + keyPrefix + "%u", "AuthorizedKeysCommandUser nobody"}
	}
	return config.Files()
}
