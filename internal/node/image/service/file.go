// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/coxswain-hpc/coxswain/internal/node/image/squash"
)

// open answers the question for an image in a file of the user. All that reads it runs as the user: nothing that the file does can keep
// this process. It counts as one of the user's as long as a container has it.
func (s *Server) open(conn *net.UnixConn, file *os.File, owner squash.Owner) error {
	served, err := s.serve(conn, file, owner)
	if err != nil {
		return errors.Join(err, send(conn, answer{Error: err.Error()}))
	}
	err = errors.Join(send(conn, answer{Image: &Mounted{}}, served.Mount), served.Mount.Close())
	if err != nil {
		return err
	}
	// The user looks into the mount, and leaves if it can be read.
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = receive(conn, &struct{}{})
	}()
	select {
	case <-left:
		return nil
	case <-served.Ended:
	}
	err = served.Err()
	if err == nil {
		err = errors.New("squashfuse has ended")
	}
	return errors.Join(err, send(conn, answer{Error: err.Error()}))
}

func (s *Server) serve(conn *net.UnixConn, file *os.File, owner squash.Owner) (*squash.Served, error) {
	if file == nil {
		return nil, errors.New("the image came without a file")
	}
	groups, err := peerGroups(conn)
	if err != nil {
		return nil, err
	}
	release, ok := s.serving.take(owner.UID)
	if !ok {
		return nil, fmt.Errorf("you have %d images in files on this node, and may have no more", maxAtOnce)
	}
	served, err := squash.OpenFile(file, owner, groups)
	if err != nil {
		release()
		return nil, err
	}
	go func() {
		<-served.Ended
		release()
		if err := served.Err(); err != nil {
			s.Log.Info("An image in a file of a user ended", "uid", owner.UID, "error", err)
		}
	}()
	return served, nil
}
