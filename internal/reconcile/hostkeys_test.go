// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
)

func TestHostKeysArePairsOfTheAlgorithmTheyAreNamedAfter(t *testing.T) {
	keys, err := hostKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for file, algorithm := range map[string]string{
		"ssh_host_rsa_key": "ssh-rsa", "ssh_host_ed25519_key": "ssh-ed25519", "ssh_host_ecdsa_key": "ecdsa-sha2-nistp256",
	} {
		private, err := ssh.ParsePrivateKey(keys[file])
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		public, _, _, _, err := ssh.ParseAuthorizedKey(keys[file+".pub"])
		if err != nil {
			t.Errorf("%s.pub: %v", file, err)
			continue
		}
		if got := public.Type(); got != algorithm {
			t.Errorf("%s.pub is of type %s, want %s", file, got, algorithm)
		}
		if diff := cmp.Diff(public.Marshal(), private.PublicKey().Marshal()); diff != "" {
			t.Errorf("%s and %s.pub are no pair:\n%s", file, file, diff)
		}
	}
}

// An operator that was to end while it made a key ended 20 s later, on a busy machine.
func TestNobodyWaitsForHostKeysAfterTheEnd(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := hostKeys(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want %v", err, context.Canceled)
	}
}
