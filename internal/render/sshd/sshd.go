// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sshd writes the configuration of the sshd on login pods and on workers.
package sshd

import (
	"strings"
	"unicode"
)

// ConfigFile is the name of the file in its ConfigMap and below /etc/ssh.
const ConfigFile = "sshd_config"

// Config is /etc/ssh/sshd_config, see sshd_config(5): generated lines, and extra ones of a user. The first value of a keyword
// wins there, so the user's lines come before those that they may want to replace. A Match block lasts until the end of
// the file, so the user's come last.
func Config(extra string, generated ...string) string {
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
