// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Acquire takes an exclusive lock on a file, which the kernel drops when the
// process ends however it ends. While another process holds it, waiting is
// called once and Acquire waits until ctx is done.
func Acquire(ctx context.Context, path string, waiting func()) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("locking: %w", err)
	}
	said := false
	for {
		release, err := try(path)
		if err != nil || release != nil {
			return release, err
		}
		if !said && waiting != nil {
			waiting()
			said = true
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the lock %s: %w", path, context.Cause(ctx))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// try takes the lock, or returns nil if another process has it.
func try(path string) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil && isAt(f, path) {
		return func() { _ = f.Close() }, nil
	}
	_ = f.Close()
	if err == nil || errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return nil, nil
	}
	return nil, fmt.Errorf("locking %s: %w", path, err)
}

// isAt reports whether a file is still the one at path: the holder of a lock may remove
// its file, and the next file is another one.
func isAt(f *os.File, path string) bool {
	ours, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(ours, there)
}
