// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package squash

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// mapTo returns a user namespace whose root is the owner outside, as mount_setattr(2) wants it. It is made once for an owner.
func (m *Mounter) mapTo(owner Owner) (*os.File, error) {
	if f, ok := m.maps[owner]; ok {
		return f, nil
	}
	// A namespace lives as long as a process or a file of it: this program waits until it is killed.
	sleeper := exec.Command("/proc/self/exe", "sleep") //nolint:noctx // it is killed below
	in, err := sleeper.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("making a user namespace: %w", err)
	}
	defer func() { _ = in.Close() }()
	sleeper.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(owner.UID), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(owner.GID), Size: 1}},
	}
	if err := sleeper.Start(); err != nil {
		return nil, fmt.Errorf("making a user namespace: %w", err)
	}
	defer func() { _, _ = sleeper.Process.Kill(), sleeper.Wait() }()
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", sleeper.Process.Pid))
	if err != nil {
		return nil, fmt.Errorf("opening a user namespace: %w", err)
	}
	m.maps[owner] = f
	return f, nil
}

// Sleep waits until the other end of a pipe is closed: it is what the program does as "sleep".
func Sleep(in io.Reader) { _, _ = io.Copy(io.Discard, in) }
