// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// maxAtOnce bounds what a user has of a node at a time, so that nobody can fill it. A user may have a step on each CPU of a large node.
const maxAtOnce = 512

// quota counts what users have. Its zero value is ready.
type quota struct {
	mutex sync.Mutex
	users map[uint32]int
}

// take takes one for a user until it is released. It reports false if the user has all already.
func (q *quota) take(uid uint32) (release func(), ok bool) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.users[uid] >= maxAtOnce {
		return nil, false
	}
	if q.users == nil {
		q.users = map[uint32]int{}
	}
	q.users[uid]++
	return func() {
		q.mutex.Lock()
		defer q.mutex.Unlock()
		if q.users[uid]--; q.users[uid] == 0 {
			delete(q.users, uid)
		}
	}, true
}

// refusalTimeout bounds the wait for a question that gets no image.
const refusalTimeout = 5 * time.Second

// refuse answers a user who asks too often. The question is read: whoever closes a connection without that takes the answer back (unix(7)).
// A file that comes along is not.
func refuse(conn *net.UnixConn) error {
	err := fmt.Errorf("you wait for %d images on this node, and may wait for no more at a time", maxAtOnce)
	err = errors.Join(err, send(conn, answer{Error: err.Error()}), conn.SetReadDeadline(time.Now().Add(refusalTimeout)))
	_, _ = conn.Read(make([]byte, 1))
	return err
}
