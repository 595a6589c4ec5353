// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package login

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// Session is a user who is logged in.
type Session struct {
	client *ssh.Client
	user   string
}

// dialTimeout bounds the connection and each answer while logging in.
const dialTimeout = 10 * time.Second

// Dial logs in. hostKey is a line as in ssh_host_ed25519_key.pub; another host is refused.
func Dial(ctx context.Context, address, user string, key *Key, hostKey string) (*Session, error) {
	host, _, _, _, err := ssh.ParseAuthorizedKey([]byte(hostKey))
	if err != nil {
		return nil, fmt.Errorf("parsing the host key: %w", err)
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", address, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
	defer stop()
	if err := connection.SetDeadline(time.Now().Add(2 * dialTimeout)); err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", address, err)
	}
	c, channels, requests, err := ssh.NewClientConn(connection, address, &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key.signer)},
		HostKeyCallback: ssh.FixedHostKey(host), HostKeyAlgorithms: []string{host.Type()},
	})
	if err != nil {
		_ = connection.Close()
		return nil, fmt.Errorf("logging in as %s at %s: %w", user, address, err)
	}
	if err := connection.SetDeadline(time.Time{}); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("connecting to %s: %w", address, err)
	}
	return &Session{client: ssh.NewClient(c, channels, requests), user: user}, nil
}

// Close logs out.
func (s *Session) Close() error {
	if err := s.client.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("logging out: %w", err)
	}
	return nil
}

// Run runs a shell command and returns its standard output. An error has what it wrote to standard error.
func (s *Session) Run(ctx context.Context, command string) (string, error) {
	return s.Feed(ctx, command, "")
}

// Feed is Run with a standard input.
func (s *Session) Feed(ctx context.Context, command, stdin string) (string, error) {
	session, err := s.client.NewSession()
	if err != nil {
		return "", fmt.Errorf("running %q: %w", command, err)
	}
	defer session.Close() //nolint:errcheck // it says EOF when the command has ended
	stop := context.AfterFunc(ctx, func() { _ = session.Close() })
	defer stop()
	var stdout, stderr bytes.Buffer
	session.Stdin, session.Stdout, session.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err = session.Run(command)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return stdout.String(), fmt.Errorf("running %q as %s: %w: %s", command, s.user, err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// Terminal starts the user's shell at a terminal, types, and returns what the terminal showed when the shell has ended. sshd greets
// the first session of a connection only.
func (s *Session) Terminal(ctx context.Context, typed string) (string, error) {
	session, err := s.client.NewSession()
	if err != nil {
		return "", fmt.Errorf("starting a shell: %w", err)
	}
	defer session.Close() //nolint:errcheck // it says EOF when the shell has ended
	stop := context.AfterFunc(ctx, func() { _ = session.Close() })
	defer stop()
	var shown bytes.Buffer
	session.Stdin, session.Stdout = strings.NewReader(typed), &shown // a terminal has no other output
	err = errors.Join(session.RequestPty("dumb", 24, 80, nil), session.Shell())
	if err == nil {
		err = session.Wait()
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return shown.String(), fmt.Errorf("running a shell as %s: %w", s.user, err)
	}
	return shown.String(), nil
}
