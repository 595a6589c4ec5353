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
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

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

	mutex  sync.Mutex
	kernel map[string]string
	fuse   map[fuseKey]string
	maps   map[Owner]*os.File
}

type fuseKey struct {
	file  string
	owner Owner
}

// New returns a Mounter. It makes its directory a place of its own, so that its mounts are seen nowhere else.
func New(dir string) (*Mounter, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making a directory for images: %w", err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=700"); err != nil {
		return nil, fmt.Errorf("making a place for images: %w", err)
	}
	if err := unix.Mount("", dir, "", unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("making a place for images: %w", err)
	}
	return &Mounter{Dir: dir, kernel: map[string]string{}, fuse: map[fuseKey]string{}, maps: map[Owner]*os.File{}}, nil
}

// Mount returns a mount of a file of ours that is nowhere yet, in which all files belong to the owner.
func (m *Mounter) Mount(ctx context.Context, file string, owner Owner) (*os.File, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if !m.Userspace {
		mount, err := m.byKernel(file, owner)
		if err == nil || !isBeyondKernel(err) {
			return mount, err
		}
		m.Userspace = true
	}
	return m.byFUSE(ctx, file, owner)
}

// isBeyondKernel reports whether an error says that the kernel mounts no squashfs here, has no loop devices, or gives no file of a squashfs to
// another user.
func isBeyondKernel(err error) bool {
	return errors.Is(err, unix.EPERM) || errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EINVAL)
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
		if err := unix.MoveMount(int(mount.Fd()), "", unix.AT_FDCWD, dir, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil { //nolint:gosec // a file descriptor is an int
			return nil, errors.Join(fmt.Errorf("mounting %s: %w", file, err), os.Remove(dir))
		}
		m.kernel[file] = dir
	}
	clone, err := tree(dir)
	if err != nil {
		return nil, err
	}
	users, err := m.mapTo(owner)
	if err == nil {
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(users.Fd())}
		err = unix.MountSetattr(int(clone.Fd()), "", unix.AT_EMPTY_PATH, &attr) //nolint:gosec // a file descriptor is an int
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
	return os.NewFile(uintptr(fd), dir), nil //nolint:gosec // a file descriptor is no negative number
}

func (m *Mounter) directory() (string, error) {
	dir, err := os.MkdirTemp(m.Dir, "")
	if err != nil {
		return "", fmt.Errorf("making a mount point: %w", err)
	}
	return dir, nil
}

// loop mounts a file by a loop device, which goes with the last mount of it.
func loop(file string) (*os.File, error) {
	backing, err := os.Open(file) //nolint:gosec // an image of the store
	if err != nil {
		return nil, fmt.Errorf("opening an image: %w", err)
	}
	defer func() { _ = backing.Close() }()
	device, err := loopDevice(backing)
	if err != nil {
		return nil, err
	}
	defer func() { _ = device.Close() }()
	fs, err := unix.Fsopen("squashfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("mounting a squashfs: %w", err)
	}
	defer func() { _ = unix.Close(fs) }()
	err = errors.Join(unix.FsconfigSetString(fs, "source", device.Name()), unix.FsconfigSetFlag(fs, "ro"))
	if err == nil {
		err = unix.FsconfigCreate(fs)
	}
	if err != nil {
		return nil, fmt.Errorf("mounting the squashfs %s: %w", file, err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return nil, fmt.Errorf("mounting the squashfs %s: %w", file, err)
	}
	return os.NewFile(uintptr(fd), file), nil //nolint:gosec // a file descriptor is no negative number
}

// loopDevice binds a file to a free loop device. Others may take the same one meanwhile.
func loopDevice(backing *os.File) (*os.File, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("looking for a loop device: %w", err)
	}
	defer func() { _ = control.Close() }()
	const attempts = 100
	for range attempts {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE) //nolint:gosec // a file descriptor is an int
		if err != nil {
			return nil, fmt.Errorf("looking for a free loop device: %w", err)
		}
		device, err := openLoop(n)
		if err != nil {
			return nil, err
		}
		config := unix.LoopConfig{Fd: uint32(backing.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_READ_ONLY | unix.LO_FLAGS_AUTOCLEAR}} //nolint:gosec // a file descriptor fits
		if err = unix.IoctlLoopConfigure(int(device.Fd()), &config); err == nil {                                                            //nolint:gosec // a file descriptor is an int
			return device, nil
		}
		_ = device.Close()
		if !errors.Is(err, unix.EBUSY) {
			return nil, fmt.Errorf("binding %s to a loop device: %w", backing.Name(), err)
		}
	}
	return nil, errors.New("no loop device stays free long enough")
}

// openLoop opens a loop device. A pod has those that were there when it began, and makes later ones itself.
func openLoop(n int) (*os.File, error) {
	const major = 7
	name := fmt.Sprintf("/dev/loop%d", n)
	device, err := os.OpenFile(name, os.O_RDWR, 0) //nolint:gosec // a device
	if errors.Is(err, os.ErrNotExist) {
		err = unix.Mknod(name, unix.S_IFBLK|0o600, int(unix.Mkdev(major, uint32(n)))) //nolint:gosec // numbers of devices are small
		if err == nil || errors.Is(err, unix.EEXIST) {
			device, err = os.OpenFile(name, os.O_RDWR, 0) //nolint:gosec // a device
		}
	}
	if err != nil {
		return nil, fmt.Errorf("opening a loop device: %w", err)
	}
	return device, nil
}

// byFUSE mounts a file by squashfuse, which shows all files as the owner's.
func (m *Mounter) byFUSE(ctx context.Context, file string, owner Owner) (*os.File, error) {
	key := fuseKey{file, owner}
	dir, ok := m.fuse[key]
	if !ok {
		var err error
		if dir, err = m.directory(); err != nil {
			return nil, err
		}
		if err := startFUSE(ctx, file, dir, owner); err != nil {
			return nil, errors.Join(err, os.Remove(dir))
		}
		m.fuse[key] = dir
	}
	return tree(dir)
}

// startFUSE starts a squashfuse, and waits until it has mounted the file. It goes on when the context ends.
func startFUSE(ctx context.Context, file, dir string, owner Owner) error {
	options := fmt.Sprintf("ro,nosuid,nodev,allow_other,uid=%d,gid=%d", owner.UID, owner.GID)
	command := exec.Command("squashfuse", "-f", "-o", options, file, dir) //nolint:gosec,noctx // arguments of ours; it outlives the request
	var printed strings.Builder
	command.Stderr = &printed
	if err := command.Start(); err != nil {
		return fmt.Errorf("starting squashfuse: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		var at, above unix.Stat_t
		if err := errors.Join(unix.Stat(dir, &at), unix.Stat(filepath.Dir(dir), &above)); err == nil && at.Dev != above.Dev {
			return nil
		}
		select {
		case err := <-ended:
			return fmt.Errorf("squashfuse of %s has ended: %w: %s", file, err, strings.TrimSpace(printed.String()))
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), command.Process.Kill())
		case <-tick.C:
		}
	}
}
