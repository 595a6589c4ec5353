// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/image/layers"
	"github.com/coxswain-hpc/coxswain/internal/node/image/registry"
)

// add imports an image for which the caller has a lock.
func (s *Store) add(ctx context.Context, remote *registry.Image, lock string) error {
	s.sweep(lock)
	dir, err := os.MkdirTemp(s.Dir, importing+lock+"@"+host()+"-")
	if err != nil {
		return fmt.Errorf("making a directory for the import: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() //nolint:gosec // a directory of ours
	config, err := remote.ReadConfig(ctx)
	if err != nil {
		return err
	}
	image, err := layers.Read(ctx, fetched(ctx, remote, dir), s.Limits)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "image")
	if err := s.squash(ctx, image, file); err != nil {
		return err
	}
	if err := finish(file); err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config"), config, 0o600); err != nil { //nolint:gosec // a file of ours
		return fmt.Errorf("writing the configuration: %w", err)
	}
	if err := finish(filepath.Join(dir, "config")); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	if err := os.Rename(filepath.Join(dir, "config"), s.path(remote.Digest, ".json")); err != nil { //nolint:gosec // files of ours
		return fmt.Errorf("adding the configuration: %w", err)
	}
	return place(file, s.path(remote.Digest, ".sqsh"))
}

// finish lets nobody else read a file, which may be private, and waits until it is on the disk: after the machine has crashed, a name
// without its content would be taken for an image for ever.
func finish(path string) error {
	f, err := os.Open(path) //nolint:gosec // a file of ours
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Sync(), f.Close())
}

// place gives a file its name, unless there is such a file: whoever has it mounted would lose it. A hard link does so on NFS as well, which
// knows no RENAME_NOREPLACE.
func place(file, name string) error {
	err := os.Link(file, name)
	if err != nil && !errors.Is(err, os.ErrExist) {
		// On a file system without hard links the lock has to do.
		err = os.Rename(file, name) //nolint:gosec // files of ours
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("adding the image: %w", err)
	}
	return nil
}

// fetched returns the layers of an image. They are kept in a directory when they are read for the first time.
func fetched(ctx context.Context, remote *registry.Image, dir string) []layers.Layer {
	out := make([]layers.Layer, len(remote.Layers))
	for i, layer := range remote.Layers {
		file, complete := filepath.Join(dir, strconv.Itoa(i)), false
		out[i].Open = func() (io.ReadCloser, error) {
			if complete {
				return os.Open(file) //nolint:gosec // a file of ours
			}
			body, err := remote.Open(ctx, layer)
			if err != nil {
				return nil, err
			}
			f, err := os.Create(file) //nolint:gosec // a file of ours
			if err != nil {
				return nil, errors.Join(fmt.Errorf("keeping a layer: %w", err), body.Close())
			}
			return &copying{from: body, to: f, done: func() { complete = true }}, nil
		}
	}
	return out
}

// copying reads a stream and keeps what was read.
type copying struct {
	from io.ReadCloser
	to   *os.File
	done func()
}

// Read is part of io.Reader.
func (c *copying) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	if _, failed := c.to.Write(p[:n]); failed != nil {
		return n, fmt.Errorf("keeping a layer: %w", failed)
	}
	if err == io.EOF { // an error because of an early end is not the end
		c.done()
	}
	return n, err
}

// Close is part of io.Closer.
func (c *copying) Close() error { return errors.Join(c.from.Close(), c.to.Close()) }

// squash writes the squashfs of an image.
func (s *Store) squash(ctx context.Context, image *layers.Image, file string) error {
	// The first step with an image waits for this, and all read it. Files of zstd at its default level are a third smaller, and take 50 times
	// as long; sqfstar 4.5 takes no other level.
	arguments := image.Summary().SqfstarArguments(file, "lz4")
	command := exec.CommandContext(ctx, "sqfstar", arguments...) //nolint:gosec // arguments of ours
	in, err := command.StdinPipe()
	if err != nil {
		return fmt.Errorf("starting sqfstar: %w", err)
	}
	var printed tail
	command.Stderr = &printed
	if err := command.Start(); err != nil {
		return fmt.Errorf("starting sqfstar: %w", err)
	}
	// sqfstar reports success for an archive that is cut off: both have to be fine.
	err = image.WriteTar(ctx, in)
	closed, ended := in.Close(), command.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && !errors.Is(err, unix.EPIPE):
		return err
	case ended != nil:
		return fmt.Errorf("making a squashfs: sqfstar: %w: %s", ended, printed.lines())
	}
	return errors.Join(err, closed)
}

// tailBytes is how much of what sqfstar prints is kept. It may print a line for each file.
const tailBytes = 1 << 10

// tail keeps the end of what is written to it.
type tail []byte

// Write is part of io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p[max(0, len(p)-tailBytes):]...)
	*t = append((*t)[:0], (*t)[max(0, len(*t)-tailBytes):]...)
	return len(p), nil
}

// lines returns the last lines as one.
func (t *tail) lines() string {
	all := strings.FieldsFunc(string(*t), func(c rune) bool { return c == '\n' || c == '\r' })
	return strings.Join(all[max(0, len(all)-2):], ", ")
}
