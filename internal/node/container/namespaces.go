// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package container

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/container/step"
)

// startLoopback lets a container with a network of its own reach itself.
func startLoopback(r *step.Request) error {
	if !slices.Contains(r.Unshare, "net") {
		return nil
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("starting the loopback of the container: %w", err)
	}
	defer func() { _ = unix.Close(socket) }()
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("starting the loopback of the container: %w", err)
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("starting the loopback of the container: %w", err)
	}
	return nil
}
