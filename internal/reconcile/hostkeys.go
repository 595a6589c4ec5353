// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/ssh"
)

// hostKeys makes an RSA (4096 bits), an Ed25519 and an ECDSA (P-256) key pair, private keys in OpenSSH's format and public
// ones as in authorized_keys, under the names that sshd looks for, see sshd_config(5) HostKey.
func hostKeys(ctx context.Context) (map[string][]byte, error) {
	rsaKey, err := rsaHostKey(ctx)
	if err != nil {
		return nil, fmt.Errorf("generating the RSA host key: %w", err)
	}
	_, ed25519Key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating the Ed25519 host key: %w", err)
	}
	ecdsaKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating the ECDSA host key: %w", err)
	}
	out := map[string][]byte{}
	for algorithm, key := range map[string]crypto.Signer{"rsa": rsaKey, "ed25519": ed25519Key, "ecdsa": ecdsaKey} {
		block, err := ssh.MarshalPrivateKey(key, "")
		if err != nil {
			return nil, fmt.Errorf("encoding the %s host key: %w", algorithm, err)
		}
		public, err := ssh.NewPublicKey(key.Public())
		if err != nil {
			return nil, fmt.Errorf("encoding the public %s host key: %w", algorithm, err)
		}
		out["ssh_host_"+algorithm+"_key"] = pem.EncodeToMemory(block)
		out["ssh_host_"+algorithm+"_key.pub"] = ssh.MarshalAuthorizedKey(public)
	}
	return out, nil
}

// rsaHostKey returns an error when the context ends first. A key takes a second of a processor, now and then four, and ten times that
// where a pod has a tenth of a processor. Nothing interrupts that, but nobody has to wait for it: an operator that shuts down ends at once.
func rsaHostKey(ctx context.Context) (*rsa.PrivateKey, error) {
	type answer struct {
		key *rsa.PrivateKey
		err error
	}
	made := make(chan answer, 1) // with room, so that nobody waits for a caller who left
	go func() {
		key, err := rsa.GenerateKey(rand.Reader, 4096)
		made <- answer{key, err}
	}()
	select {
	case a := <-made:
		return a.key, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
