// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package sshd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
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
			want := map[string]string{ConfigFile: tt.want}
			if diff := cmp.Diff(want, Config{Extra: tt.extra, Defaults: []string{"X11Forwarding yes"}}.Files()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheSshdConfigOfAUserTakesThePlaceOfTheDefaults(t *testing.T) {
	const own = "Banner /etc/motd\nMatch User root\n  ChrootDirectory none"
	const hostKeys = "HostKey /etc/ssh/ssh_host_rsa_key\nHostKey /etc/ssh/ssh_host_ed25519_key\nHostKey /etc/ssh/ssh_host_ecdsa_key\n"
	config := Config{Extra: "MaxSessions 3\nMatch User x\n  MaxSessions 1", Own: own, Defaults: []string{"X11Forwarding yes"}, Keys: []string{"AuthorizedKeysCommandUser nobody"}}
	want := map[string]string{
		ConfigFile: "Include /etc/ssh/sshd_config.d/*.conf\n### EXTRA CONFIG ###\nMaxSessions 3\n" + hostKeys + "UsePAM yes\nInclude /etc/ssh/sshd_config.own\n" +
			"AuthorizedKeysCommandUser nobody\n### EXTRA CONFIG ###\nMatch User x\n  MaxSessions 1\n",
		ownFile: own + "\n",
	}
	if diff := cmp.Diff(want, config.Files()); diff != "" {
		t.Errorf("without a jail: %s", diff)
	}
	config.Jail = &slinkyv1beta1.Jail{}
	want[ConfigFile] = "Include /etc/ssh/sshd_config.d/*.conf\n### EXTRA CONFIG ###\nMaxSessions 3\n" + hostKeys +
		"UsePAM yes\nInclude /etc/ssh/sshd_config.jail\nInclude /etc/ssh/sshd_config.own\nAuthorizedKeysCommandUser nobody\nChrootDirectory /mnt/jail\n" +
		"AuthorizedKeysFile /mnt/jail/%h/.ssh/authorized_keys .ssh/authorized_keys\n### EXTRA CONFIG ###\nMatch User x\n  MaxSessions 1\n"
	want[jailFile] = "ChrootDirectory /mnt/jail\nMatch all\nChrootDirectory /mnt/jail\n"
	if diff := cmp.Diff(want, config.Files()); diff != "" {
		t.Errorf("with a jail: %s", diff)
	}
}

// Whatever a user writes, the generated lines stand whole, and none of them inside of a Match block.
func FuzzConfig(f *testing.F) {
	f.Add("X11Forwarding no\nMatch User x\n  X11Forwarding no")
	f.Add("\"match\" all")
	f.Fuzz(func(t *testing.T, extra string) {
		const generated = "GeneratedKeyword yes"
		global, _, ok := strings.Cut("\n"+Config{Extra: extra, Defaults: []string{generated}}.Files()[ConfigFile], "\n"+generated+"\n")
		if !ok {
			t.Fatalf("the generated line is not whole with %q", extra)
		}
		if _, blocks := cutMatch(global); blocks != "" {
			t.Errorf("the generated line stands in a Match block with %q", extra)
		}
	})
}
