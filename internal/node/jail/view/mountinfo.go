// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"strconv"
	"strings"
)

// MountPoints returns the mount points of a text in the form of /proc/self/mountinfo, see proc_pid_mountinfo(5).
func MountPoints(mountinfo string) []string {
	var out []string
	for line := range strings.Lines(mountinfo) {
		if fields := strings.Fields(line); len(fields) > 4 {
			out = append(out, unescape(fields[4]))
		}
	}
	return out
}

// unescape replaces what the kernel writes for blanks, tabs, line ends and backslashes: a backslash and three octal digits.
func unescape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if code, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
