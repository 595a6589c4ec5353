// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"strings"
	"testing"
)

// What "jail sessions" does is seen with the images, by jail_sessions and jail_root of images/test/jail.
func TestSessionsSayWhatTheyCannotStart(t *testing.T) {
	for _, tt := range []struct{ name, args, want string }{
		{"no program", "sessions --root /mnt/jail", "no program is given"},
		{"nothing behind the dashes", "sessions --", "no program is given"},
		{"a program that is not there", "sessions -- nothing-of-that-name", "finding the program"},
		{"an argument before the dashes", "sessions sshd -- sshd", `unexpected argument "sshd"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := run(t.Context(), strings.Fields(tt.args), io.Discard); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("it says %v, want %q", err, tt.want)
			}
		})
	}
}
