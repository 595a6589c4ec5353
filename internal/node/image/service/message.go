// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package service hands out images to the containers of a node: a process that is root in the pod of slurmd imports and mounts them, and
// those of users ask it by a socket. So an import is done once for all tasks of a node, outside of the memory of any job, and goes on if a
// job that waits for it is cancelled. A user's logins stay with the user: the service asks for the one that it needs.
//
// Both sides send packets of JSON (SOCK_SEQPACKET). The user's side asks once; the last answer carries a mount of the image, as a file. An
// image in a file of the user comes with the question.
package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/image/registry/credentials"
)

// Config is what containers need of the configuration of an image.
type Config struct {
	// Env has the variables of the image, NAME=VALUE.
	Env []string `json:"env,omitempty"`
	// Entrypoint and Cmd are the commands of the image.
	Entrypoint []string `json:"entrypoint,omitempty"`
	Cmd        []string `json:"cmd,omitempty"`
	// WorkingDir is where they start.
	WorkingDir string `json:"workingDir,omitempty"`
}

// question is what the user's side sends first.
type question struct {
	// Image is the URI of an image.
	Image string `json:"image,omitempty"`
	// File says that the image is the file that comes with the packet. The user's side goes on, or stays to read why it cannot.
	File bool `json:"file,omitempty"`
}

// answer is what the service sends: one of the fields.
type answer struct {
	Progress string   `json:"progress,omitempty"`
	Login    *place   `json:"login,omitempty"`
	Error    string   `json:"error,omitempty"`
	Image    *Mounted `json:"image,omitempty"`
}

// place is where a login is needed.
type place struct {
	Host       string `json:"host"`
	Repository string `json:"repository"`
}

// login is what the user's side sends for it.
type login struct {
	credentials.Credentials
	Error string `json:"error,omitempty"`
}

// Mounted is an image that is mounted.
type Mounted struct {
	// Digest and Config are empty for an image in a file.
	Digest string `json:"digest"`
	Config Config `json:"config"`
	// Mount is nowhere yet (open_tree(2)). All files belong to whoever asked.
	Mount *os.File `json:"-"`
}

// maxPacket bounds packets: what a socket takes at once by default.
const maxPacket = 160 << 10

// errTooLong is the error of a packet that is longer.
var errTooLong = errors.New("the packet is too long")

// sendTimeout is how long the other side may read nothing.
const sendTimeout = time.Minute

func send(conn *net.UnixConn, message any, files ...*os.File) error {
	return sendWithin(conn, sendTimeout, message, files...)
}

func sendWithin(conn *net.UnixConn, timeout time.Duration, message any, files ...*os.File) error {
	packet, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("writing a packet: %w", err)
	}
	if len(packet) > maxPacket {
		return fmt.Errorf("%w: it has %d bytes, and may have %d", errTooLong, len(packet), maxPacket)
	}
	var rights []byte
	for _, f := range files {
		rights = unix.UnixRights(int(f.Fd()))
	}
	// Whoever does not read keeps nobody.
	if err := conn.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
		return fmt.Errorf("sending a packet: %w", err)
	}
	if _, _, err := conn.WriteMsgUnix(packet, rights, nil); err != nil {
		return fmt.Errorf("sending a packet: %w", err)
	}
	return nil
}

// receive reads a packet, and the file that came with it, if one did.
func receive(conn *net.UnixConn, message any) (*os.File, error) {
	size, err := nextSize(conn)
	if err != nil {
		return nil, fmt.Errorf("receiving a packet: %w", err)
	}
	packet, rights := make([]byte, min(size, maxPacket)), make([]byte, unix.CmsgSpace(4))
	n, m, _, _, err := conn.ReadMsgUnix(packet, rights)
	switch {
	case err == nil && size > maxPacket:
		err = errTooLong
	case err == nil && n == 0:
		err = io.EOF
	}
	if err != nil {
		closeFiles(rights[:m])
		return nil, fmt.Errorf("receiving a packet: %w", err)
	}
	file, err := fileOf(rights[:m])
	if err == nil {
		err = json.Unmarshal(packet[:n], message)
	}
	if err != nil {
		if file != nil {
			_ = file.Close()
		}
		return nil, fmt.Errorf("reading a packet: %w", err)
	}
	return file, nil
}

// nextSize waits for a packet, and returns how long it is. Whoever sends none costs no memory for it.
func nextSize(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	size, failed := 0, error(nil)
	err = raw.Read(func(fd uintptr) bool {
		for {
			size, _, failed = unix.Recvfrom(int(fd), nil, unix.MSG_PEEK|unix.MSG_TRUNC)
			if !errors.Is(failed, unix.EINTR) {
				return !errors.Is(failed, unix.EAGAIN)
			}
		}
	})
	return size, errors.Join(err, failed)
}

// fileOf returns the file that came with a packet, if there is one.
func fileOf(rights []byte) (*os.File, error) {
	switch files, err := filesOf(rights); {
	case err != nil:
		return nil, err
	case len(files) == 0:
		return nil, nil
	case len(files) > 1:
		for _, f := range files {
			_ = f.Close()
		}
		return nil, errors.New("more than one file came along")
	default:
		return files[0], nil
	}
}

// filesOf returns what came with a packet. There may be room for more than was asked for.
func filesOf(rights []byte) ([]*os.File, error) {
	if len(rights) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, fmt.Errorf("reading what came along: %w", err)
	}
	var files []*os.File
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			continue // something else
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, nil
}

// closeFiles closes what came with a packet.
func closeFiles(rights []byte) {
	files, _ := filesOf(rights)
	for _, f := range files {
		_ = f.Close()
	}
}
