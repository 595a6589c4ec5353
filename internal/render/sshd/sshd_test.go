// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package sshd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConfig(t *testing.T) {
	const before, generated = "Include /etc/ssh/sshd_config.d/*.conf\n", "UsePAM yes\nX11Forwarding yes\n"
	const banner = "### EXTRA CONFIG ###\n"
	tests := []struct{ name, extra, want string }{
		{"nothing extra", "", before + generated},
		{"lines come first, where the first value wins", "X11Forwarding no", before + banner + "X11Forwarding no\n" + generated},
		{"a Match block comes last, where it holds for nothing else", "Match User x\n  X11Forwarding no\n", before + generated + banner + "Match User x\n  X11Forwarding no\n"},
		{"lines before a Match block come first all the same", "UsePAM no\nmatch\tAddress 10.0.0.0/8\nX11Forwarding no", before + banner + "UsePAM no\n" + generated + banner + "match\tAddress 10.0.0.0/8\nX11Forwarding no\n"},
		{"a keyword may be followed by a sign", " Match=User x\n", before + generated + banner + " Match=User x\n"},
		{"the word match elsewhere is no block", "# a rematch would be nice\nBanner /etc/match me\n", before + banner + "# a rematch would be nice\nBanner /etc/match me\n" + generated},
		{"blank text is nothing", " \n\n", before + generated},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Config(tt.extra, "UsePAM yes", "X11Forwarding yes")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whatever a user writes, the generated lines stand whole, and none of them inside of a Match block.
func FuzzConfig(f *testing.F) {
	f.Add("X11Forwarding no\nMatch User x\n  X11Forwarding no")
	f.Add("\"match\" all")
	f.Fuzz(func(t *testing.T, extra string) {
		const generated = "GeneratedKeyword yes"
		global, _, ok := strings.Cut("\n"+Config(extra, generated), "\n"+generated+"\n")
		if !ok {
			t.Fatalf("the generated line is not whole with %q", extra)
		}
		if _, blocks := cutMatch(global); blocks != "" {
			t.Errorf("the generated line stands in a Match block with %q", extra)
		}
	})
}
