// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package squash mounts squashfs files for users: a file once, and a clone of that mount for each container, in which all files are the
// user's. The kernel mounts it where this process is root of the machine. In a user namespace (hostUsers: false of a pod) it mounts no
// squashfs, and squashfuse does, one for each file and user.
//
// Only files that this program has made go to the kernel: it would be root's parser that reads them.
package squash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Owner is a user, to whom all files of a mount belong.
type Owner struct{ UID, GID uint32 }

// Mounter keeps mounts.
type Mounter struct {
	// Dir is a directory of this program alone, for mount points.
	Dir string
	// Userspace has squashfuse mount all files.
	Userspace bool
	// FellBack is called when Userspace becomes true, because of an error of the kernel, if it is not nil.
	FellBack func(error)

	mutex  sync.Mutex
	kernel map[string]string
	fuse   map[fuseKey]fuseMount
	maps   map[Owner]*os.File
}

type fuseKey struct {
	file  string
	owner Owner
}

type fuseMount struct {
	dir string
	// ended is closed when squashfuse has ended.
	ended <-chan struct{}
}

// errCannot is an error of the kernel that does not depend on the file.
var errCannot = errors.New("the kernel mounts no images on this node")

func cannot(err error) error { return fmt.Errorf("%w: %w", errCannot, err) }

// New returns a Mounter. It makes its directory a place of its own, so that its mounts are seen nowhere else.
func New(dir string) (*Mounter, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil { //nolint:gosec // a directory of ours
		return nil, fmt.Errorf("making a directory for images: %w", err)
	}
	if err := detachOwn(dir); err != nil {
		return nil, err
	}
	if err := unix.Mount(source, dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=700"); err != nil {
		return nil, fmt.Errorf("making a place for images: %w", err)
	}
	if err := unix.Mount("", dir, "", unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("making a place for images: %w", err)
	}
	return &Mounter{Dir: dir, kernel: map[string]string{}, fuse: map[fuseKey]fuseMount{}, maps: map[Owner]*os.File{}}, nil
}

// Mount returns a mount of a file of ours that is nowhere yet, in which all files belong to the owner.
func (m *Mounter) Mount(ctx context.Context, file string, owner Owner) (*os.File, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if !m.Userspace {
		mount, err := m.byKernel(file, owner)
		switch {
		case errors.Is(err, unix.EINVAL) && !errors.Is(err, errCannot):
			// No squashfs, or one with a compressor that this kernel was built without.
			return m.byFUSE(ctx, file, owner)
		case !errors.Is(err, errCannot):
			return mount, err
		}
		m.Userspace = true
		if m.FellBack != nil {
			m.FellBack(err)
		}
	}
	return m.byFUSE(ctx, file, owner)
}

func (m *Mounter) byKernel(file string, owner Owner) (*os.File, error) {
	dir, ok := m.kernel[file]
	if !ok {
		mount, err := loop(file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = mount.Close() }()
		if dir, err = m.directory(); err != nil {
			return nil, err
		}
		if err := unix.MoveMount(int(mount.Fd()), "", unix.AT_FDCWD, dir, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return nil, errors.Join(fmt.Errorf("mounting %s: %w", file, err), os.Remove(dir)) //nolint:gosec // a directory of ours
		}
		m.kernel[file] = dir
	}
	clone, err := tree(dir)
	if err != nil {
		return nil, err
	}
	users, err := m.mapTo(owner)
	if err != nil {
		err = cannot(err)
	} else {
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(users.Fd())}
		err = unix.MountSetattr(int(clone.Fd()), "", unix.AT_EMPTY_PATH, &attr)
		// Linux maps no users of a squashfs before 6.2.
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM) {
			err = cannot(err)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("giving the files of %s to user %d: %w", file, owner.UID, err), clone.Close())
	}
	return clone, nil
}

func tree(dir string) (*os.File, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cloning the mount of an image: %w", err)
	}
	return os.NewFile(uintptr(fd), dir), nil
}

func (m *Mounter) directory() (string, error) {
	dir, err := os.MkdirTemp(m.Dir, "")
	if err != nil {
		return "", fmt.Errorf("making a mount point: %w", err)
	}
	return dir, nil
}
