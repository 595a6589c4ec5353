// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package login plays an ordinary user of a Slurm cluster: a user with an ssh key, who logs in, submits jobs and looks
// at what became of them. It does not use Kubernetes.
package login

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Key is an ssh key pair, kept in a file as ssh wants it.
type Key struct {
	// Path is the file of the private key.
	Path   string
	signer ssh.Signer
}

// EnsureKey reads the key from a file, or makes one and writes it there, with the public key beside it in <path>.pub.
func EnsureKey(path string) (*Key, error) {
	text, err := os.ReadFile(path) //nolint:gosec // where the caller wants it
	if errors.Is(err, os.ErrNotExist) {
		text, err = writeKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ssh key: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("parsing the ssh key %s: %w", path, err)
	}
	k := &Key{Path: path, signer: signer}
	if err := os.WriteFile(path+".pub", []byte(k.AuthorizedKey()+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("writing the public ssh key: %w", err)
	}
	return k, nil
}

// AuthorizedKey returns the public key as a line of an authorized_keys file.
func (k *Key) AuthorizedKey() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k.signer.PublicKey()))) + " " + filepath.Base(filepath.Dir(k.Path))
}

func writeKey(path string) ([]byte, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making an ssh key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return nil, fmt.Errorf("encoding an ssh key: %w", err)
	}
	text := pem.EncodeToMemory(block)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of the ssh key: %w", err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, fmt.Errorf("writing the ssh key: %w", err)
	}
	return text, nil
}
