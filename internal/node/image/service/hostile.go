// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// questionTimeout is how long a user's side may take for what the service waits for: its question, and its logins.
const questionTimeout = time.Minute

// await receives a packet that the user's side has to send now.
func (s *Server) await(conn *net.UnixConn, message any) (*os.File, error) {
	if err := conn.SetReadDeadline(time.Now().Add(cmp.Or(s.patience, questionTimeout))); err != nil {
		return nil, err
	}
	file, err := receive(conn, message)
	if err != nil {
		return nil, err
	}
	return file, conn.SetReadDeadline(time.Time{})
}

// isPassing reports whether a listener works again soon: connections that are gone, and a process without room for another file.
func isPassing(err error) bool {
	for _, one := range []error{unix.ECONNABORTED, unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM, unix.EINTR} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

// acceptPause is the time until a listener is tried again.
const acceptPause = 100 * time.Millisecond

func pause(ctx context.Context) {
	timer := time.NewTimer(acceptPause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// maxImports is how many images may be imported for one user at a time. Each may take more than a gigabyte of memory, outside of the
// user's jobs, for as long as a registry of the user likes.
const maxImports = 2

// turns has users wait for their turn to import. Its zero value is ready.
type turns struct {
	mutex sync.Mutex
	users map[uint32]*turn
}

type turn struct {
	slots chan struct{}
	// wanted counts those who have a slot or wait for one.
	wanted int
}

// take waits until a user may import one more image.
func (t *turns) take(ctx context.Context, uid uint32) (done func(), err error) {
	t.mutex.Lock()
	if t.users == nil {
		t.users = map[uint32]*turn{}
	}
	if t.users[uid] == nil {
		t.users[uid] = &turn{slots: make(chan struct{}, maxImports)}
	}
	one := t.users[uid]
	one.wanted++
	t.mutex.Unlock()
	leave := func() {
		t.mutex.Lock()
		defer t.mutex.Unlock()
		if one.wanted--; one.wanted == 0 {
			delete(t.users, uid)
		}
	}
	select {
	case one.slots <- struct{}{}:
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
	return func() {
		<-one.slots
		leave()
	}, nil
}
