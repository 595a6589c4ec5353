// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package port gives tests ports for servers that cannot be asked on which one they listen. A port that was found free, and closed, may be
// in use when the server listens: by another test, by one of another package, or by a connection.
package port

import (
	"net"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Hold holds a port of 127.0.0.1 until the test ends. Only who listens by the ListenConfig gets it, as often as it likes.
func Hold(t testing.TB) (address string, listen net.ListenConfig) {
	t.Helper()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("making a socket: %v", err)
	}
	t.Cleanup(func() { _ = unix.Close(socket) })
	// It is bound and does not listen, so that it gets no connections.
	if err := share(socket); err != nil {
		t.Fatalf("sharing a port: %v", err)
	}
	if err := unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatalf("holding a port: %v", err)
	}
	bound, err := unix.Getsockname(socket)
	if err != nil {
		t.Fatalf("asking for the port that is held: %v", err)
	}
	address = net.JoinHostPort("127.0.0.1", strconv.Itoa(bound.(*unix.SockaddrInet4).Port))
	return address, net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if failure := c.Control(func(fd uintptr) { err = share(int(fd)) }); failure != nil {
			return failure
		}
		return err
	}}
}

func share(socket int) error {
	return unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
}
