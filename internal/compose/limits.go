// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// limitsVariable has the text of /etc/security/limits.conf for start-ssh. PAM reads the file when sshd opens a session.
const limitsVariable = "COXSWAIN_LIMITS"

// maxLimits is how long that text may be. Linux accepts 128 KiB for a variable.
const maxLimits = 64 << 10

// limitItems are the items of limits.conf(5).
const limitItems = " core data fsize memlock nofile rss stack cpu nproc as maxlogins nonewprivs maxsyslogins priority locks " +
	"sigpending msgqueue nice rtprio chroot "

var limitValue = regexp.MustCompile(`^(unlimited|infinity|[-+]?[0-9]+)$`)

// limit gives the sessions of users on workers the limits of the field at path. They have sshd where they have a jail.
func (w *workers) limit(f *findings, text, path string) {
	if f.ignore(text != "" && w.jail == nil, path+" (without a jail)"); w.jail != nil {
		w.container.Env = append(w.container.Env, f.limitsConf(text, path)...)
	}
}

// limitsConf is the variable with limits.conf from the field at path; none without a text. It reports lines that PAM would ignore.
func (f *findings) limitsConf(text, path string) []corev1.EnvVar {
	switch {
	case strings.TrimSpace(text) == "":
		return nil
	case strings.ContainsRune(text, 0):
		f.fail(path, "must not contain the character NUL")
		return nil
	case len(text) > maxLimits:
		f.fail(path, "must have at most %d bytes", maxLimits)
		return nil
	}
	number := 0
	for line := range strings.Lines(text) {
		number++
		f.ignore(!isLimit(line), fmt.Sprintf("%s (line %d, which is none of limits.conf)", path, number))
	}
	return []corev1.EnvVar{{Name: limitsVariable, Value: text}}
}

// isLimit reports whether pam_limits understands a line: DOMAIN TYPE ITEM VALUE, or DOMAIN - for no limits at all.
func isLimit(line string) bool {
	line, _, _ = strings.Cut(line, "#")
	words := strings.Fields(line)
	switch len(words) {
	case 0:
		return true
	case 2:
		return words[1] == "-"
	case 4:
		item, limit := strings.ToLower(words[2]), strings.ToLower(words[3])
		return slices.Contains([]string{"hard", "soft", "-"}, strings.ToLower(words[1])) && strings.Contains(limitItems, " "+item+" ") &&
			(item == "chroot" || limitValue.MatchString(limit))
	default:
		return false
	}
}
