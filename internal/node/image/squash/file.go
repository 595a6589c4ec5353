// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package squash

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Served is a squashfs file of a user that a squashfuse serves.
type Served struct {
	// Mount is nowhere yet, and all files in it are the user's. Nobody else can look into it. Squashfuse ends with the last clone of it.
	Mount *os.File
	// Ended is closed when squashfuse has ended.
	Ended <-chan struct{}

	err error
}

// Err returns why squashfuse has ended; nil as long as it runs, and if nobody has the mount any more.
func (s *Served) Err() error {
	select {
	case <-s.Ended:
		return s.err
	default:
		return nil
	}
}

// OpenFile has a squashfuse serve a squashfs file that a user has opened. Nothing in this process reads the file, or looks into the mount:
// both may be made to block it. Squashfuse runs as the user, in namespaces of its own, and has no rights. Whether it can read the file shows
// when the user looks into the mount: it has ended if not (ENOTCONN).
func OpenFile(file *os.File, owner Owner, groups []uint32) (*Served, error) {
	// Others than files may let squashfuse wait for ever. File systems of users are not asked.
	var status unix.Statx_t
	err := unix.Statx(int(file.Fd()), "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE, &status)
	if err != nil {
		return nil, fmt.Errorf("looking at the image: %w", err)
	}
	if status.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, errors.New("the image is no file")
	}
	near, far, err := pair()
	if err != nil {
		return nil, err
	}
	defer func() { _ = near.Close() }()
	command, err := confined(owner, groups)
	if err != nil {
		return nil, errors.Join(err, far.Close())
	}
	printed := &bounded{}
	command.ExtraFiles, command.Stderr = []*os.File{file, far}, printed
	err = command.Start()
	_ = far.Close()
	if err != nil {
		return nil, fmt.Errorf("starting squashfuse: %w", err)
	}
	mount, err := receiveMount(near)
	if err != nil {
		_ = command.Process.Kill()
		return nil, ending(errors.Join(err, command.Wait()), printed)
	}
	ended := make(chan struct{})
	served := &Served{Mount: mount, Ended: ended}
	go func() {
		served.err = ending(command.Wait(), printed)
		close(ended)
	}()
	return served, nil
}

// confined returns the command for Confined, in namespaces of its own.
func confined(owner Owner, groups []uint32) (*exec.Cmd, error) {
	users, err := identity("/proc/self/uid_map")
	if err != nil {
		return nil, err
	}
	all, err := identity("/proc/self/gid_map")
	if err != nil {
		return nil, err
	}
	command := exec.Command("/proc/self/exe", append([]string{"squashfuse"}, arguments(owner, groups)...)...) //nolint:gosec,noctx // it outlives the request
	command.Dir, command.Env = "/", []string{"PATH=/usr/bin:/bin"}
	command.SysProcAttr = &syscall.SysProcAttr{
		Setsid: true,
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC |
			syscall.CLONE_NEWUTS,
		UidMappings: users, GidMappings: all, GidMappingsEnableSetgroups: true,
	}
	return command, nil
}

// identity returns a map of a user namespace in which all users are who they are in that of this process.
func identity(file string) ([]syscall.SysProcIDMap, error) {
	f, err := os.Open(file) //nolint:gosec // a file of the kernel
	if err != nil {
		return nil, fmt.Errorf("reading which users there are: %w", err)
	}
	defer func() { _ = f.Close() }()
	var out []syscall.SysProcIDMap
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var first, outside, size int
		if _, err := fmt.Sscan(lines.Text(), &first, &outside, &size); err != nil {
			return nil, fmt.Errorf("reading which users there are: %w", err)
		}
		out = append(out, syscall.SysProcIDMap{ContainerID: first, HostID: first, Size: size})
	}
	return out, nil
}

func pair() (near, far *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making a socket for a mount: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "near"), os.NewFile(uintptr(fds[1]), "far"), nil
}

func receiveMount(socket *os.File) (*os.File, error) {
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(int(socket.Fd()), make([]byte, 1), rights, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("receiving a mount: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(errors.New("no mount was made"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.Join(errors.New("no mount was made"), err)
	}
	return os.NewFile(uintptr(fds[0]), "mount"), nil
}

// ending returns what squashfuse said at its end, if it was an error.
func ending(err error, printed *bounded) error {
	text := strings.Join(strings.Fields(printed.text.String()), " ")
	switch {
	case err == nil:
		return nil
	case text == "":
		return fmt.Errorf("squashfuse has ended: %w", err)
	}
	return fmt.Errorf("squashfuse has ended: %s", text)
}

// bounded keeps the beginning of what is written.
type bounded struct{ text strings.Builder }

const maxPrinted = 1000

var _ io.Writer = &bounded{}

func (b *bounded) Write(p []byte) (int, error) {
	b.text.Write(p[:min(len(p), maxPrinted-b.text.Len())])
	return len(p), nil
}
