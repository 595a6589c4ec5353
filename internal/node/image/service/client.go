// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/image/reference"
	"github.com/coxswain-hpc/coxswain/internal/node/image/registry"
)

// Get asks the service at a socket for an image. It shows progress, and finds the logins that the service needs.
func Get(ctx context.Context, socket string, ref reference.Reference, find registry.Login, progress func(string)) (*Mounted, error) {
	conn, hangUp, err := dial(ctx, socket)
	if err != nil {
		return nil, err
	}
	defer hangUp()
	if err := send(conn, question{Image: ref.String()}); err != nil {
		return nil, err
	}
	for {
		var a answer
		file, err := receive(conn, &a)
		switch {
		case err != nil:
			return nil, errors.Join(fmt.Errorf("asking for images on this node: %w", err), context.Cause(ctx))
		case a.Error != "":
			return nil, errors.New(a.Error)
		case a.Image != nil && file == nil:
			return nil, errors.New("the image came without a mount")
		case a.Image != nil:
			a.Image.Mount = file
			return a.Image, nil
		case a.Login != nil:
			var reply login
			if reply.Credentials, err = find(a.Login.Host, a.Login.Repository); err != nil {
				reply.Error = err.Error()
			}
			if err := send(conn, reply); err != nil {
				return nil, err
			}
		default:
			progress(a.Progress)
		}
	}
}

// Open asks the service at a socket for a mount of a squashfs file. The caller has opened it, and looks into the mount here first.
func Open(ctx context.Context, socket string, image *os.File) (*Mounted, error) {
	conn, hangUp, err := dial(ctx, socket)
	if err != nil {
		return nil, err
	}
	defer hangUp()
	if err := send(conn, question{File: true}, image); err != nil {
		return nil, err
	}
	var a answer
	mount, err := receive(conn, &a)
	switch {
	case err != nil:
		return nil, errors.Join(fmt.Errorf("asking for images on this node: %w", err), context.Cause(ctx))
	case a.Error != "":
		return nil, errors.New(a.Error)
	case a.Image == nil || mount == nil:
		return nil, errors.New("the image came without a mount")
	}
	// It waits for squashfuse, which may wait for a file system.
	looked := make(chan error, 1)
	go func() {
		var status unix.Stat_t
		looked <- unix.Fstat(int(mount.Fd()), &status)
	}()
	select {
	case err = <-looked:
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), mount.Close())
	}
	if err != nil {
		_ = mount.Close() // else squashfuse would not end
		return nil, reason(conn, err)
	}
	a.Image.Mount = mount
	return a.Image, nil
}

// reasonTimeout bounds the wait for the end of a squashfuse.
const reasonTimeout = 5 * time.Second

// reason returns why a user cannot look into a mount. If squashfuse has ended, the service knows why.
func reason(conn *net.UnixConn, looking error) error {
	var a answer
	err := conn.SetReadDeadline(time.Now().Add(reasonTimeout))
	if err == nil && (errors.Is(looking, unix.ENOTCONN) || errors.Is(looking, unix.ECONNABORTED)) {
		_, err = receive(conn, &a)
	}
	if err != nil || a.Error == "" {
		return fmt.Errorf("the image is damaged: looking into it: %w", looking)
	}
	return errors.New(a.Error)
}

// dial connects to a socket until the context ends, or its user hangs up.
func dial(ctx context.Context, socket string) (conn *net.UnixConn, hangUp func(), err error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "unixpacket", socket)
	if err != nil {
		return nil, nil, fmt.Errorf("asking for images on this node: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	return c.(*net.UnixConn), func() {
		stop()
		_ = c.Close()
	}, nil
}
