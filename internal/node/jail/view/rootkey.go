// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"golang.org/x/crypto/ssh"

	"github.com/coxswain-hpc/coxswain/internal/node/jail"
)

const (
	sshDir         = "/root/.ssh"
	rootKey        = sshDir + "/id_ecdsa"
	rootPublicKey  = rootKey + ".pub"
	authorizedKeys = sshDir + "/authorized_keys"
	// rootComment stands behind root's public key.
	rootComment = "root@soperator-internal"
	// maxKeys bounds what is read of a file with keys, in bytes.
	maxKeys = 1 << 20
)

// MakeRootKey makes the key pair with which root of the jail goes on from login pods to workers, as the jails of Soperator have it
// (docs/contributors/predecessors/soperator-installation.md#the-jail), and authorizes it. Where there is a public key, nothing is done. Of
// pods that start at the same time one makes the pair, and the next start does what one that was killed has left undone. No symbolic link is
// followed.
func MakeRootKey(root *jail.Root) error {
	strict := root.WithoutLinks()
	err := makeRootKey(strict)
	if err != nil {
		return fmt.Errorf("making the key pair of root: %w", err)
	}
	return nil
}

func makeRootKey(root *jail.Root) error {
	if _, err := root.Lstat(rootPublicKey); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, dir := range []string{"/root", sshDir} {
		if err := root.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	key, err := ensureKey(root)
	if err != nil {
		return err
	}
	public := append(bytes.TrimSpace(ssh.MarshalAuthorizedKey(key.PublicKey())), " "+rootComment+"\n"...)
	if err := authorize(root, public); err != nil {
		return err
	}
	return put(root, rootPublicKey, public, 0o644)
}

// ensureKey returns the private key of the jail. It makes one where there is none.
func ensureKey(root *jail.Root) (ssh.Signer, error) {
	there, err := read(root, rootKey)
	if errors.Is(err, fs.ErrNotExist) {
		var key *ecdsa.PrivateKey
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return nil, err
		}
		var block *pem.Block
		if block, err = ssh.MarshalPrivateKey(key, rootComment); err != nil {
			return nil, err
		}
		if err = put(root, rootKey, pem.EncodeToMemory(block), 0o600); err != nil {
			return nil, err
		}
		there, err = read(root, rootKey) // another pod may have been first
	}
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(there)
	if err != nil {
		return nil, fmt.Errorf("reading %s of the jail: %w", rootKey, err)
	}
	return signer, nil
}

// authorize adds a public key to those with which root is let in, unless it is among them.
func authorize(root *jail.Root, public []byte) error {
	there, err := read(root, authorizedKeys)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return put(root, authorizedKeys, public, 0o600)
	case err != nil:
		return err
	case bytes.Contains(there, bytes.TrimSpace(public)):
		return nil
	}
	file, err := root.Append(authorizedKeys)
	if err != nil {
		return err
	}
	if len(there) > 0 && there[len(there)-1] != '\n' {
		public = append([]byte("\n"), public...)
	}
	_, err = file.Write(public)
	return errors.Join(err, file.Close())
}

// put makes a file with a content at once, unless it is there. It gets its name as a second one: NFS, on which most jails are, knows no
// renaming that spares what is there.
func put(root *jail.Root, name string, content []byte, mode fs.FileMode) error {
	temporary := name + "." + rand.Text()
	file, err := root.Create(temporary, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Chmod(mode), file.Close()); err == nil {
		err = root.AddName(temporary, name)
	}
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, root.Remove(temporary))
}

// read returns the content of a file with keys.
func read(root *jail.Root, name string) ([]byte, error) {
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, maxKeys))
}
