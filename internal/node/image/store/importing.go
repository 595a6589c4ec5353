// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
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

// add imports an image that is locked.
func (s *Store) add(ctx context.Context, remote *registry.Image) error {
	prefix := ".import-" + strings.TrimPrefix(remote.Digest, "sha256:")
	// Whoever had the lock before is gone.
	if err := s.sweep(prefix); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(s.Dir, prefix+"-")
	if err != nil {
		return fmt.Errorf("making a directory for the import: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
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
	if err := os.WriteFile(filepath.Join(dir, "config"), config, 0o600); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	if err := os.Rename(filepath.Join(dir, "config"), s.path(remote.Digest, ".json")); err != nil {
		return fmt.Errorf("adding the configuration: %w", err)
	}
	err = unix.Renameat2(unix.AT_FDCWD, file, unix.AT_FDCWD, s.path(remote.Digest, ".sqsh"), unix.RENAME_NOREPLACE)
	if err != nil && !errors.Is(err, unix.EEXIST) {
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

func (c *copying) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	if _, failed := c.to.Write(p[:n]); failed != nil {
		return n, fmt.Errorf("keeping a layer: %w", failed)
	}
	if errors.Is(err, io.EOF) {
		c.done()
	}
	return n, err
}

func (c *copying) Close() error { return errors.Join(c.from.Close(), c.to.Close()) }

// squash writes the squashfs of an image.
func (s *Store) squash(ctx context.Context, image *layers.Image, file string) error {
	compressor, options := "zstd", []string(nil)
	if len(s.Compression) > 0 {
		compressor, options = s.Compression[0], s.Compression[1:]
	}
	command := exec.CommandContext(ctx, "sqfstar", image.Summary().SqfstarArguments(file, compressor, options...)...) //nolint:gosec // arguments of ours
	in, err := command.StdinPipe()
	if err != nil {
		return fmt.Errorf("starting sqfstar: %w", err)
	}
	var printed bytes.Buffer
	command.Stderr = &printed
	if err := command.Start(); err != nil {
		return fmt.Errorf("starting sqfstar: %w", err)
	}
	// sqfstar reports success for an archive that is cut off: both have to be fine.
	err = image.WriteTar(ctx, in)
	if err = errors.Join(err, in.Close(), command.Wait()); err != nil {
		return fmt.Errorf("making a squashfs: %w: %s", err, lastLine(printed.String()))
	}
	return nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
