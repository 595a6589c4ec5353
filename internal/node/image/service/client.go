// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/coxswain-hpc/coxswain/internal/node/image/reference"
	"github.com/coxswain-hpc/coxswain/internal/node/image/registry"
)

// Get asks the service at a socket for an image. It shows progress, and finds the logins that the service needs.
func Get(ctx context.Context, socket string, ref reference.Reference, find registry.Login, progress func(string)) (*Mounted, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unixpacket", socket)
	if err != nil {
		return nil, fmt.Errorf("asking for images on this node: %w", err)
	}
	unix := conn.(*net.UnixConn)
	defer func() { _ = unix.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = unix.Close() })
	defer stop()
	if err := send(unix, question{Image: ref.String()}); err != nil {
		return nil, err
	}
	for {
		var a answer
		file, err := receive(unix, &a)
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
			if err := send(unix, reply); err != nil {
				return nil, err
			}
		default:
			progress(a.Progress)
		}
	}
}
