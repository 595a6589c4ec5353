// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jail opens files in a jail, the root file system that login pods and workers share. Its users own that tree. So
// every path below it is resolved by the kernel as if the jail were the root (RESOLVE_IN_ROOT of openat2(2)): a symbolic link
// to the host's /etc is one to the jail's, and links of /proc lead nowhere.
package jail

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Root is the root directory of a jail.
type Root struct {
	dir *os.File
	// strict are more rules by which paths are resolved.
	strict uint64
}

// Open opens the jail that is mounted at dir.
func Open(dir string) (*Root, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the jail at %s: %w", dir, err)
	}
	return &Root{dir: os.NewFile(uintptr(fd), dir)}, nil
}

// Close releases the directory.
func (r *Root) Close() error { return r.dir.Close() }

// WithoutLinks returns the same jail, in which no part of a path may be a symbolic link. Only the original is closed.
func (r *Root) WithoutLinks() *Root { return &Root{dir: r.dir, strict: unix.RESOLVE_NO_SYMLINKS} }

// Sub returns the directory at path, taken for a jail of its own.
func (r *Root) Sub(path string) (*Root, error) {
	dir, err := r.open(path, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return &Root{dir: dir}, nil
}

// Open opens a file for reading. It does not wait for the writer of a FIFO. Errors name the path in the jail.
func (r *Root) Open(path string) (*os.File, error) {
	return r.open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
}

// Path returns a descriptor that only stands for the file or directory at path, to mount on it or to look at it.
func (r *Root) Path(path string) (*os.File, error) { return r.open(path, unix.O_PATH, 0) }

// Link returns what the symbolic link at path points to, and an error for anything that is none.
func (r *Root) Link(path string) (string, error) {
	file, err := r.open(path, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	buffer := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(file.Fd()), "", buffer)
	if err != nil {
		return "", fmt.Errorf("reading the link %s of the jail: %w", path, err)
	}
	return string(buffer[:n]), nil
}

// maxTries is how often the kernel is asked again after a directory on the way was moved.
const maxTries = 64

func (r *Root) open(path string, flags, mode uint64) (*os.File, error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Mode: mode, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS | r.strict}
	for range maxTries {
		fd, err := unix.Openat2(int(r.dir.Fd()), path, &how)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil
		case errors.Is(err, unix.ELOOP) && r.strict != 0:
			return nil, fmt.Errorf("opening %s of the jail: a part of it is a symbolic link: %w", path, err)
		case errors.Is(err, unix.ELOOP):
			return nil, fmt.Errorf("opening %s of the jail: a symbolic link on the way leads in a circle or through /proc: %w", path, err)
		case !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR):
			return nil, fmt.Errorf("opening %s of the jail: %w", path, err)
		}
	}
	return nil, fmt.Errorf("opening %s of the jail: somebody moves directories on the way all the time", path)
}
