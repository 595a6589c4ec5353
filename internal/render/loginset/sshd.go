// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package loginset

import (
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
)

// sshConfigMap holds sshd_config and root's authorized_keys.
func sshConfigMap(l *slinkyv1beta1.LoginSet, set label.Set) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: pod.ObjectMeta(l, l.SSHConfigName(), set),
		Data: map[string]string{
			"sshd_config":     sshdConfig(l),
			"authorized_keys": "### Coxswain: spec.rootSshAuthorizedKeys ###\n" + terminated(l.Spec.RootSSHAuthorizedKeys),
		},
	}
}

// sshdConfig is /etc/ssh/sshd_config, see sshd_config(5). The first value of a keyword wins there, so the user's lines
// come before those that they may want to replace. A Match block lasts until the end of the file, so the user's come last.
func sshdConfig(l *slinkyv1beta1.LoginSet) string {
	var b strings.Builder
	global, blocks := cutMatch(l.Spec.ExtraSshdConfig)
	b.WriteString("Include /etc/ssh/sshd_config.d/*.conf\n")
	extra(&b, global)
	b.WriteString("UsePAM yes\nX11Forwarding yes\nSubsystem sftp internal-sftp\n")
	if len(l.Spec.Users) > 0 {
		// A command rather than a file, since sshd distrusts the permissions of directories that the kubelet fills. It
		// reads the keys anew at each login, so that a changed list counts without a restart.
		b.WriteString("AuthorizedKeysCommand /usr/bin/cat " + usersDir + "/" + keyPrefix + "%u\nAuthorizedKeysCommandUser nobody\n")
	}
	extra(&b, blocks)
	return b.String()
}

func extra(b *strings.Builder, text string) {
	if strings.TrimSpace(text) != "" {
		b.WriteString("### EXTRA CONFIG ###\n" + terminated(text))
	}
}

// cutMatch cuts sshd's configuration before its first Match block.
func cutMatch(text string) (global, blocks string) {
	at := 0
	for line := range strings.Lines(text) {
		keyword := strings.FieldsFunc(line, func(r rune) bool { return unicode.IsSpace(r) || r == '=' || r == '"' })
		if len(keyword) > 0 && strings.EqualFold(keyword[0], "Match") {
			return text[:at], text[at:]
		}
		at += len(line)
	}
	return text, ""
}

func terminated(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
