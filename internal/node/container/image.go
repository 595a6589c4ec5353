// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/container/rootfs"
	"github.com/coxswain-hpc/coxswain/internal/node/container/step"
	"github.com/coxswain-hpc/coxswain/internal/node/image/embedded"
	"github.com/coxswain-hpc/coxswain/internal/node/image/service"
	"github.com/coxswain-hpc/coxswain/internal/node/image/squash"
)

// openImage opens an image of the user's own: a squashfs file, which a squashfuse shows, or a directory that is a root file system. Its
// configuration is empty: the image has it among its files.
func openImage(ctx context.Context, socket, path string) (*service.Mounted, error) {
	file, err := openPath(path)
	if err != nil {
		return nil, fmt.Errorf("--container-image: %w", err)
	}
	if file == nil {
		tree, err := rootfs.Tree(path, true)
		if err != nil {
			return nil, fmt.Errorf("--container-image: opening the directory: %w", err)
		}
		return &service.Mounted{Mount: tree}, nil
	}
	defer func() { _ = file.Close() }()
	image, err := service.Open(ctx, socket, file)
	if err != nil {
		return nil, fmt.Errorf("failed to create container filesystem for image: %s: %w", path, err)
	}
	return image, nil
}

// openPath opens a squashfs file. For a directory it returns nil.
func openPath(path string) (*os.File, error) {
	status, err := os.Stat(path)
	if err == nil && !status.IsDir() && !status.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is neither a squashfs file nor a directory", path)
	}
	if err == nil && status.IsDir() {
		return nil, nil
	}
	var file *os.File
	if err == nil {
		// It may be another one by now, for which nobody waits.
		file, err = os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0) //nolint:gosec // the user's own, with the user's rights
	}
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		return nil, fmt.Errorf("%s: %w", path, failed.Err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := squash.Check(file, status.Size()); err != nil {
		return nil, errors.Join(fmt.Errorf("%s %w", path, err), file.Close())
	}
	return file, nil
}

// absolute returns a path that a user wrote, seen from the directory of the job.
func absolute(path, directory string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(directory, path)
}

// hostOnly are variables that mean nothing in a container, so that no image of a file gets them from the job.
func hostOnly(name string) bool {
	return slices.Contains([]string{"PATH", "LD_LIBRARY_PATH", "LD_PRELOAD"}, name)
}

// configOf returns the configuration of an image of the user's own, which is made of the image's files.
func configOf(root *rootfs.Root, job step.Environment) (service.Config, error) {
	environment, err := readOptional(root, embedded.EnvironmentFile)
	if err != nil {
		return service.Config{}, err
	}
	script, err := readOptional(root, embedded.ScriptFile)
	if err != nil {
		return service.Config{}, err
	}
	lookup := func(name string) string {
		if hostOnly(name) {
			return ""
		}
		return job[name]
	}
	return service.Config{Env: embedded.Environment(environment, lookup), WorkingDir: embedded.WorkingDir(script)}, nil
}

// readOptional reads a file of an image. It is empty if it is not there, or is none: people make images by hand.
func readOptional(root *rootfs.Root, name string) (string, error) {
	content, err := root.ReadFile(name)
	if errors.Is(err, unix.EIO) || errors.Is(err, unix.ENOTCONN) {
		return "", fmt.Errorf("reading %s of the image: %w", name, err)
	}
	return string(content), nil
}

// makeDirectory makes the directory in which tasks start, if the image names one that it does not have. If that cannot be, they say so.
func makeDirectory(root *rootfs.Root, name string) {
	if name == "" {
		return
	}
	if dir, err := root.Directory(name); err == nil {
		_ = dir.Close()
	}
}
