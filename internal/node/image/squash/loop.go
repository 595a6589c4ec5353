// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package squash

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

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
		return nil, cannot(fmt.Errorf("mounting a squashfs: %w", err))
	}
	defer func() { _ = unix.Close(fs) }()
	err = errors.Join(unix.FsconfigSetString(fs, "source", device.Name()), unix.FsconfigSetFlag(fs, "ro"))
	if err == nil {
		err = unix.FsconfigCreate(fs)
	}
	if errors.Is(err, unix.EPERM) {
		err = cannot(err) // in a user namespace
	}
	if err != nil {
		return nil, fmt.Errorf("mounting the squashfs %s: %w", file, err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return nil, fmt.Errorf("mounting the squashfs %s: %w", file, err)
	}
	return os.NewFile(uintptr(fd), file), nil
}

// loopMajor is the number of loop devices (Documentation/admin-guide/devices.txt of Linux).
const loopMajor = 7

// openLoop opens a loop device. The kernel may have made it just now, and /dev of a pod has only devices that were there when it started.
func openLoop(path string, n int) (*os.File, error) {
	device, err := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // a path of ours
	if errors.Is(err, os.ErrNotExist) {
		made := unix.Mknod(path, unix.S_IFBLK|0o600, int(unix.Mkdev(loopMajor, uint32(n)))) //nolint:gosec // a small number
		if made != nil && !errors.Is(made, os.ErrExist) {
			return nil, fmt.Errorf("making the loop device %s: %w", path, made)
		}
		device, err = os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // a path of ours
	}
	if err != nil {
		return nil, fmt.Errorf("opening a loop device: %w", err)
	}
	return device, nil
}

// loopDevice binds a file to a free loop device. Others may take the same one meanwhile.
func loopDevice(backing *os.File) (*os.File, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, cannot(fmt.Errorf("looking for a loop device: %w", err))
	}
	defer func() { _ = control.Close() }()
	const attempts = 100
	for range attempts {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, cannot(fmt.Errorf("looking for a free loop device: %w", err))
		}
		device, err := openLoop(fmt.Sprintf("/dev/loop%d", n), n)
		if err != nil {
			return nil, cannot(err)
		}
		config := unix.LoopConfig{Fd: uint32(backing.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_READ_ONLY | unix.LO_FLAGS_AUTOCLEAR}} //nolint:gosec // a file descriptor fits
		if err = unix.IoctlLoopConfigure(int(device.Fd()), &config); err == nil {
			return device, nil
		}
		_ = device.Close()
		if errors.Is(err, unix.EPERM) {
			err = cannot(err)
		}
		if !errors.Is(err, unix.EBUSY) {
			return nil, fmt.Errorf("binding %s to a loop device: %w", backing.Name(), err)
		}
	}
	return nil, errors.New("no loop device stays free long enough")
}
