// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package machine finds which boot of the machine runs, and reboots it.
package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// Machine is the machine whose /proc is at Proc. The process must share the machine's PID namespace and be root there.
type Machine struct {
	// Proc is the directory, /proc but in tests.
	Proc string
	// Signal sends a signal to a process, and Restart restarts the machine without further ado; nil are those of the kernel.
	Signal  func(pid int, signal syscall.Signal) error
	Restart func() error
}

// bootID is how the kernel writes one, see proc_sys_kernel(5) random/boot_id.
var bootID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// Boot returns the id of the boot that runs. No two boots of any machine have the same.
func (m Machine) Boot() (string, error) {
	text, err := os.ReadFile(filepath.Join(m.Proc, "sys", "kernel", "random", "boot_id"))
	if err != nil {
		return "", fmt.Errorf("reading the boot id: %w", err)
	}
	return parseBoot(string(text))
}

func parseBoot(text string) (string, error) {
	id := strings.TrimSpace(text)
	if !bootID.MatchString(id) {
		return "", fmt.Errorf("reading the boot id: %q is none", id)
	}
	return id, nil
}

// startReboot is the signal by which systemd starts reboot.target: SIGRTMIN+5, see systemd(1). The C library's SIGRTMIN is 34.
const startReboot = syscall.Signal(34 + 5)

// Reboot has the machine reboot, and returns before it goes down. Where systemd is the machine's init, that ends the services in their
// order and unmounts file systems. Any other init has no signal for it that all understand. There file systems are synchronised, and
// the kernel restarts at once.
func (m Machine) Reboot() error {
	name, err := os.ReadFile(filepath.Join(m.Proc, "1", "comm"))
	if err != nil {
		return fmt.Errorf("reading what process 1 is: %w", err)
	}
	if strings.TrimSpace(string(name)) != "systemd" {
		return m.restart()
	}
	signal := m.Signal
	if signal == nil {
		signal = syscall.Kill
	}
	if err := signal(1, startReboot); err != nil {
		return fmt.Errorf("telling systemd to reboot: %w", err)
	}
	return nil
}

// ErrOwnNamespace is returned when the process is not in the machine's PID namespace: process 1 is this program.
var ErrOwnNamespace = errors.New("process 1 is this program: the pod needs hostPID")

// Check returns an error unless the process can reboot the machine.
func (m Machine) Check() error {
	if os.Getpid() == 1 {
		return ErrOwnNamespace
	}
	return nil
}

func (m Machine) restart() error {
	if m.Restart != nil {
		return m.Restart()
	}
	syscall.Sync()
	if err := syscall.Reboot(syscall.LINUX_REBOOT_CMD_RESTART); err != nil {
		return fmt.Errorf("restarting the kernel: %w", err)
	}
	return nil
}
