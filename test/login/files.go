// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

// Through connects from the login node to an address that it can reach, as "ssh -L" does.
func (s *Session) Through(ctx context.Context, network, address string) (net.Conn, error) {
	connection, err := s.client.DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s through the login node: %w", address, err)
	}
	return connection, nil
}

// Types of packets of the ssh file transfer protocol, version 3, as sftp and scp speak it
// (https://datatracker.ietf.org/doc/html/draft-ietf-secsh-filexfer-02, section 3).
const (
	sftpInit    = 1
	sftpVersion = 2
	sftpOpen    = 3
	sftpClose   = 4
	sftpRead    = 5
	sftpWrite   = 6
	sftpStatus  = 101
	sftpHandle  = 102
	sftpData    = 103
)

// Flags with which a file is opened.
const (
	openRead  = 0x01
	openWrite = 0x02 | 0x08 | 0x10 // write, create, truncate
)

// mostData is the most that is written or read at once; all servers take 32 KiB.
const mostData = 32 << 10

// Put writes a small file, at most 32 KiB, by sftp.
func (s *Session) Put(ctx context.Context, path string, content []byte) error {
	return s.transfer(ctx, path, openWrite, func(t *transfer, handle string) error {
		request := t.request(sftpWrite).text(handle).number64(0).text(string(content))
		_, err := t.exchange(request, sftpStatus)
		return err
	})
}

// Fetch reads a small file, at most 32 KiB, by sftp.
func (s *Session) Fetch(ctx context.Context, path string) ([]byte, error) {
	var content []byte
	err := s.transfer(ctx, path, openRead, func(t *transfer, handle string) error {
		answer, err := t.exchange(t.request(sftpRead).text(handle).number64(0).number(mostData), sftpData)
		content = answer
		return err
	})
	return content, err
}

// transfer opens a file, does something with it and closes it.
func (s *Session) transfer(ctx context.Context, path string, flags uint32, do func(t *transfer, handle string) error) error {
	session, err := s.client.NewSession()
	if err != nil {
		return fmt.Errorf("transferring %s: %w", path, err)
	}
	defer session.Close() //nolint:errcheck // it says EOF when the server has gone
	stop := context.AfterFunc(ctx, func() { _ = session.Close() })
	defer stop()
	in, inErr := session.StdinPipe()
	out, outErr := session.StdoutPipe()
	if err := errors.Join(inErr, outErr, session.RequestSubsystem("sftp")); err != nil {
		return fmt.Errorf("transferring %s: %w", path, err)
	}
	t := &transfer{in: in, out: out}
	if _, err := t.exchange(packet{kind: sftpInit}.number(3), sftpVersion); err != nil {
		return fmt.Errorf("transferring %s: %w", path, err)
	}
	handle, err := t.exchange(t.request(sftpOpen).text(path).number(flags).number(0), sftpHandle)
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, err)
	}
	if err := do(t, string(handle)); err != nil {
		return fmt.Errorf("transferring %s: %w", path, err)
	}
	if _, err := t.exchange(t.request(sftpClose).text(string(handle)), sftpStatus); err != nil {
		return fmt.Errorf("closing %s: %w", path, err)
	}
	return nil
}

// transfer is a conversation with an sftp server, one request at a time.
type transfer struct {
	in   io.Writer
	out  io.Reader
	next uint32
}

// packet is a request that grows.
type packet struct {
	kind byte
	body []byte
}

func (t *transfer) request(kind byte) packet {
	t.next++
	return packet{kind: kind}.number(t.next)
}

func (p packet) number(n uint32) packet {
	p.body = binary.BigEndian.AppendUint32(p.body, n)
	return p
}

func (p packet) number64(n uint64) packet {
	p.body = binary.BigEndian.AppendUint64(p.body, n)
	return p
}

func (p packet) text(s string) packet {
	p = p.number(uint32(len(s))) //nolint:gosec // at most 32 KiB
	p.body = append(p.body, s...)
	return p
}

// exchange sends a request and returns the text of the answer, which has to be of a kind.
func (t *transfer) exchange(p packet, want byte) ([]byte, error) {
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(p.body)+1)) //nolint:gosec // at most 32 KiB
	if _, err := t.in.Write(append(append(frame, p.kind), p.body...)); err != nil {
		return nil, fmt.Errorf("asking the sftp server: %w", err)
	}
	var head [5]byte
	if _, err := io.ReadFull(t.out, head[:]); err != nil {
		return nil, fmt.Errorf("reading from the sftp server: %w", err)
	}
	size := binary.BigEndian.Uint32(head[:4])
	if size < 1 || size > 2*mostData {
		return nil, fmt.Errorf("reading from the sftp server: a packet of %d bytes", size)
	}
	body := make([]byte, size-1)
	if _, err := io.ReadFull(t.out, body); err != nil {
		return nil, fmt.Errorf("reading from the sftp server: %w", err)
	}
	return answer(head[4], body, want)
}

// answer returns the text in an answer: of a handle, of data, or of the server's words when it refuses.
func answer(kind byte, body []byte, want byte) ([]byte, error) {
	if kind == sftpVersion && want == sftpVersion {
		return nil, nil
	}
	if kind == sftpStatus && len(body) >= 8 && binary.BigEndian.Uint32(body[4:]) == 0 && want == sftpStatus {
		return nil, nil
	}
	if kind == sftpStatus && len(body) >= 12 {
		return nil, fmt.Errorf("the sftp server says %q", body[12:])
	}
	if kind != want || len(body) < 8 {
		return nil, fmt.Errorf("the sftp server answers with type %d, not %d", kind, want)
	}
	return body[8:], nil
}
