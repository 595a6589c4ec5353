// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"fmt"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/image/squash"
)

// peer returns who asks.
func peer(conn *net.UnixConn) (squash.Owner, error) {
	var cred *unix.Ucred
	err := option(conn, func(fd int) (err error) {
		cred, err = unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		return err
	})
	if err != nil {
		return squash.Owner{}, err
	}
	return squash.Owner{UID: cred.Uid, GID: cred.Gid}, nil
}

// maxGroups is how many groups a process may have (credentials(7)). Each has groupBytes.
const (
	maxGroups  = 65536
	groupBytes = 4
)

// peerGroups returns the other groups of who asks.
func peerGroups(conn *net.UnixConn) ([]uint32, error) {
	var groups []uint32
	err := option(conn, func(fd int) error {
		list, size := make([]uint32, maxGroups), uint32(maxGroups*groupBytes)
		pointer := unsafe.Pointer(unsafe.SliceData(list)) //nolint:gosec // the kernel writes size bytes of it (socket(7))
		_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PEERGROUPS, uintptr(pointer),
			uintptr(unsafe.Pointer(&size)), 0) //nolint:gosec // it writes how many it has written
		if e != 0 {
			return e
		}
		groups = list[:size/groupBytes]
		return nil
	})
	return groups, err
}

func option(conn *net.UnixConn, get func(fd int) error) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return fmt.Errorf("looking who asks: %w", err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = get(int(fd)) })
	if err = errors.Join(err, failed); err != nil {
		return fmt.Errorf("looking who asks: %w", err)
	}
	return nil
}
