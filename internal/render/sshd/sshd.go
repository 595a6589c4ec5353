// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sshd writes the configuration of the sshd on login pods and on workers.
package sshd

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// Names of the files in their ConfigMap and below /etc/ssh.
const (
	// ConfigFile is what sshd reads. It includes the others.
	ConfigFile = "sshd_config"
	// ownFile is the user's file unchanged, so that line numbers in sshd's messages are the user's.
	ownFile = "sshd_config.own"
	// jailFile keeps sessions in the jail, also those for which a Match block of the user's sets something else.
	jailFile = "sshd_config.jail"

	dir     = "/etc/ssh/"
	include = "Include " + dir
	chroot  = "ChrootDirectory " + slinkyv1beta1.JailDir
	usePAM  = "UsePAM yes"
)

// ownVariable has the source of ownFile for start-ssh, for the message about one that sshd refuses.
const ownVariable = "COXSWAIN_SSHD_CONFIG"

// hostKeyAlgorithms are those of the host keys of login pods and workers.
var hostKeyAlgorithms = []string{"rsa", "ed25519", "ecdsa"} //nolint:gochecknoglobals // a constant list

// HostKeyFiles are the keys of a Secret with host keys, named as sshd looks for them in /etc/ssh.
func HostKeyFiles() []string {
	var files []string
	for _, algorithm := range hostKeyAlgorithms {
		files = append(files, hostKey(algorithm), hostKey(algorithm)+".pub")
	}
	return files
}

func hostKey(algorithm string) string { return "ssh_host_" + algorithm + "_key" }

// HostKeys are a volume of that name with the host keys of a Secret, and what mounts them where sshd looks for them.
func HostKeys(volume, secret string) (corev1.Volume, []corev1.VolumeMount) {
	var items []corev1.KeyToPath
	var mounts []corev1.VolumeMount
	for _, file := range HostKeyFiles() {
		mode := new(int32(0o600))
		if strings.HasSuffix(file, ".pub") {
			mode = new(int32(0o644))
		}
		items = append(items, corev1.KeyToPath{Key: file, Path: file, Mode: mode})
		mounts = append(mounts, corev1.VolumeMount{Name: volume, MountPath: dir + file, SubPath: file, ReadOnly: true})
	}
	return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret, Items: items}}}, mounts
}

// HoldsHostKeys reports whether a file or directory, by its path, is a host key or that of all host keys.
func HoldsHostKeys(path string) bool {
	return path+"/" == dir || slices.ContainsFunc(HostKeyFiles(), func(file string) bool { return path == dir+file })
}

// Config is what the files are made from, see sshd_config(5). The first value of a keyword wins there.
type Config struct {
	// Extra are lines of a user that come before what is generated, since they may want to replace it. A Match block lasts
	// until the end of the file, so these come last.
	Extra string
	// Own is an sshd_config of the user's that takes the place of Defaults; empty is none.
	Own string
	// Defaults are lines that only hold without Own, and Keys set where keys of users are unless something else is set.
	Defaults, Keys []string
	// Jail is where sessions are; nil is in the container.
	Jail *slinkyv1beta1.Jail
}

// Files are the files by name. What keeps the pod and its users apart comes before Own, so that it stays as it is.
func (c Config) Files() map[string]string {
	files := map[string]string{}
	lines := append([]string{usePAM}, c.Defaults...)
	if c.Own != "" {
		lines = nil
		for _, algorithm := range hostKeyAlgorithms {
			lines = append(lines, "HostKey "+dir+hostKey(algorithm))
		}
		lines = append(lines, usePAM)
		if c.Jail != nil {
			files[jailFile] = chroot + "\nMatch all\n" + chroot + "\n"
			lines = append(lines, include+jailFile)
		}
		files[ownFile] = Terminated(c.Own)
		lines = append(lines, include+ownFile)
	}
	lines = append(lines, c.Keys...)
	if c.Jail != nil {
		// The keys of a user are in the jail, and root's in the container as well: that is where rootSshAuthorizedKeys are.
		lines = append(lines, chroot, "AuthorizedKeysFile "+slinkyv1beta1.JailDir+"/%h/.ssh/authorized_keys .ssh/authorized_keys")
	}
	files[ConfigFile] = merge(c.Extra, lines)
	return files
}

// Mounts mount files of a volume below /etc/ssh.
func Mounts(volume string, files map[string]string) []corev1.VolumeMount {
	var out []corev1.VolumeMount
	for _, name := range slices.Sorted(maps.Keys(files)) {
		out = append(out, corev1.VolumeMount{Name: volume, MountPath: dir + name, SubPath: name, ReadOnly: true})
	}
	return out
}

// Source is the variable with the source of the user's sshd_config; none without one.
func Source(ref *corev1.ConfigMapKeySelector) []corev1.EnvVar {
	if ref == nil {
		return nil
	}
	return []corev1.EnvVar{{Name: ownVariable, Value: "key " + ref.Key + " of ConfigMap " + ref.Name}}
}

// merge puts generated lines between the extra lines and the extra Match blocks.
func merge(extra string, generated []string) string {
	var b strings.Builder
	global, blocks := cutMatch(extra)
	b.WriteString("Include /etc/ssh/sshd_config.d/*.conf\n")
	write(&b, global)
	for _, line := range generated {
		b.WriteString(line + "\n")
	}
	write(&b, blocks)
	return b.String()
}

func write(b *strings.Builder, extra string) {
	if strings.TrimSpace(extra) != "" {
		b.WriteString("### EXTRA CONFIG ###\n" + Terminated(extra))
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

// Terminated is a text whose last line has an end.
func Terminated(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
