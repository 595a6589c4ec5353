// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/node/image/reference"
	"github.com/coxswain-hpc/coxswain/internal/node/image/registry"
	"github.com/coxswain-hpc/coxswain/internal/node/image/registry/credentials"
	"github.com/coxswain-hpc/coxswain/internal/node/image/squash"
	"github.com/coxswain-hpc/coxswain/internal/node/image/store"
)

// Server answers at a socket.
type Server struct {
	Store   *store.Store
	Mounter *squash.Mounter
	Client  *registry.Client
	Log     *slog.Logger

	// asking are questions of users that are not answered yet, serving are images in files that they have.
	asking, serving quota
	importing       turns
	// patience replaces questionTimeout in tests.
	patience time.Duration
}

// Serve answers until the context ends. A socket that was there before is replaced: whoever had it is gone.
func (s *Server) Serve(ctx context.Context, socket string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing an old socket: %w", err)
	}
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: socket, Net: "unixpacket"})
	if err != nil {
		return fmt.Errorf("listening for users: %w", err)
	}
	if err := os.Chmod(socket, 0o666); err != nil { //nolint:gosec // it is for all users
		return errors.Join(fmt.Errorf("listening for users: %w", err), listener.Close())
	}
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	var users sync.WaitGroup
	defer users.Wait()
	defer cancel()
	for {
		conn, err := listener.AcceptUnix()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && isPassing(err):
			s.Log.Warn("A user was not listened to", "error", err)
			pause(ctx)
			continue
		case err != nil:
			return fmt.Errorf("listening for users: %w", err)
		}
		users.Go(func() {
			defer func() { _ = conn.Close() }()
			if err := s.answer(ctx, conn); err != nil {
				s.Log.Info("An image was not handed out", "error", err)
			}
		})
	}
}

// answer answers one question.
func (s *Server) answer(ctx context.Context, conn *net.UnixConn) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	owner, err := peer(conn)
	if err != nil {
		return err
	}
	done, ok := s.asking.take(owner.UID)
	if !ok {
		return refuse(conn)
	}
	defer done()
	var q question
	file, err := s.await(conn, &q)
	if err != nil {
		return err
	}
	if file != nil {
		defer func() { _ = file.Close() }()
	}
	if q.File {
		return s.open(conn, file, owner)
	}
	image, err := s.image(ctx, conn, q, owner)
	if err != nil {
		return errors.Join(err, send(conn, answer{Error: err.Error()}))
	}
	defer func() { _ = image.Mount.Close() }()
	err = send(conn, answer{Image: image}, image.Mount)
	if errors.Is(err, errTooLong) {
		err = errors.Join(err, send(conn, answer{Error: "the environment and the commands of the image are too long: build it with shorter ones"}))
	}
	return err
}

func (s *Server) image(ctx context.Context, conn *net.UnixConn, q question, owner squash.Owner) (*Mounted, error) {
	ref, err := reference.ParseURI(q.Image)
	if err != nil {
		return nil, err
	}
	find := func(host, repository string) (credentials.Credentials, error) {
		if err := send(conn, answer{Login: &place{host, repository}}); err != nil {
			return credentials.Credentials{}, err
		}
		var reply login
		file, err := s.await(conn, &reply)
		if file != nil {
			_ = file.Close()
		}
		if err != nil {
			return credentials.Credentials{}, err
		}
		if reply.Error != "" {
			return credentials.Credentials{}, errors.New(reply.Error)
		}
		return reply.Credentials, nil
	}
	tell := func(text string) { _ = send(conn, answer{Progress: text}) }
	images := *s.Store
	images.Turn = func(ctx context.Context) (func(), error) { return s.importing.take(ctx, owner.UID) }
	image, err := images.Get(ctx, s.Client, ref, find, tell)
	if err != nil {
		return nil, err
	}
	config, err := configOf(image.Config)
	if err != nil {
		return nil, err
	}
	mount, err := s.Mounter.Mount(ctx, image.Path, owner)
	if err != nil {
		return nil, err
	}
	return &Mounted{Digest: image.Digest, Config: config, Mount: mount}, nil
}

// configOf reads the configuration of an image (OCI image-spec, config.md). What an image leaves out is empty.
func configOf(text []byte) (Config, error) {
	var file struct {
		Config struct {
			Env, Entrypoint, Cmd []string
			WorkingDir           string
		} `json:"config"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return Config{}, fmt.Errorf("reading the configuration of the image: %w", err)
	}
	return Config{Env: file.Config.Env, Entrypoint: file.Config.Entrypoint, Cmd: file.Config.Cmd, WorkingDir: file.Config.WorkingDir}, nil
}
