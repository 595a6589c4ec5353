// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package store keeps container images as squashfs files, by digest, and imports those that are not there. Several nodes may have one
// store on a shared file system: an image is fetched once.
//
//	sha256:<digest of the manifest>.sqsh              the files of an image, complete and never changed
//	sha256:<digest of the manifest>.json              its configuration, as the registry has it
//	sha256:<digest of the manifest>-<registry>.lock   locked by whoever imports it (flock(2))
//	.import-*                                         what an import has so far; nothing of it stays
//
// Locks are of one registry each: one that hands out an image of another, and never ends, keeps nobody from importing it there.
package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/image/layers"
	"github.com/coxswain-hpc/coxswain/internal/node/image/reference"
	"github.com/coxswain-hpc/coxswain/internal/node/image/registry"
)

// lockInterval is the time between two looks at an import of somebody else.
const lockInterval = 200 * time.Millisecond

// Store is a directory of images.
type Store struct {
	// Dir is the directory. Users may not read it: the registry says who gets an image.
	Dir string
	// Limits bounds images.
	Limits layers.Limits
	// Turn waits until another import may begin, if it is not nil. An import takes memory, and runs for as long as a registry likes.
	Turn func(context.Context) (done func(), err error)
}

// Image is an image of the store.
type Image struct {
	// Digest is that of the manifest.
	Digest string
	// Path is the squashfs.
	Path string
	// Config is the configuration of the image, as JSON of OCI or Docker.
	Config []byte
}

// Get returns an image, and imports it if it is not there. The registry is asked in any case: a tag may have moved, and whoever may not read
// the image gets none. Progress gets lines for the user.
func (s *Store) Get(ctx context.Context, client *registry.Client, ref reference.Reference, login registry.Login, progress func(string)) (*Image, error) {
	remote, err := client.Resolve(ctx, ref, login)
	if err != nil {
		return nil, err
	}
	if image, err := s.find(remote.Digest); image != nil || err != nil {
		return image, err
	}
	if s.Turn != nil {
		done, err := s.Turn(ctx)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	name := fmt.Sprintf("%s-%.4x", remote.Digest, sha256.Sum256([]byte(ref.Registry)))
	release, err := s.lock(ctx, name)
	if err != nil {
		return nil, err
	}
	defer release()
	if image, err := s.find(remote.Digest); image != nil || err != nil {
		return image, err
	}
	progress("importing docker image: " + ref.Name())
	if err := s.add(ctx, remote, name); err != nil {
		return nil, fmt.Errorf("importing %s: %w", ref.Name(), err)
	}
	progress("imported docker image: " + ref.Name())
	return s.find(remote.Digest)
}

func (s *Store) path(digest, suffix string) string { return filepath.Join(s.Dir, digest+suffix) }

// find returns an image that is complete; nil if there is none.
func (s *Store) find(digest string) (*Image, error) {
	path := s.path(digest, ".sqsh")
	switch status, err := os.Lstat(path); {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("looking for an image: %w", err)
	case !status.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no file", path)
	}
	config, err := os.ReadFile(s.path(digest, ".json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // somebody has removed it: it is imported again
	}
	if err != nil {
		return nil, fmt.Errorf("reading the configuration of an image: %w", err)
	}
	return &Image{Digest: digest, Path: path, Config: config}, nil
}

// lock waits until nobody else has a lock. The file stays: who holds a lock on a file that is gone keeps nobody out.
func (s *Store) lock(ctx context.Context, name string) (release func(), err error) {
	tick := time.NewTicker(lockInterval)
	defer tick.Stop()
	for {
		if release, err := s.tryLock(name); release != nil || err != nil {
			return release, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// tryLock returns nil if somebody else has a lock.
func (s *Store) tryLock(name string) (release func(), err error) {
	f, err := os.OpenFile(s.path(name, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking an image: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case err == nil:
		return func() { _ = f.Close() }, nil
	case errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR):
		return nil, f.Close()
	}
	return nil, errors.Join(fmt.Errorf("locking %s: %w", f.Name(), err), f.Close())
}
