// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package populate

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// bufferSize is how much is copied at a time where the kernel does not copy by itself.
const bufferSize = 1 << 20

// content copies the content of a file. Holes stay holes.
func (w *worker) content(in, out int, st *unix.Statx_t) error {
	if st.Size == 0 {
		return nil
	}
	size := int64(st.Size) //nolint:gosec // no file has 8 EiB
	if st.Blocks*512 >= st.Size {
		return w.extent(in, out, 0, size)
	}
	for from := int64(0); from < size; {
		data, err := unix.Seek(in, from, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // nothing but a hole up to the end
		}
		if err != nil {
			return w.extent(in, out, from, size) // the file system does not know where its holes are
		}
		hole, err := unix.Seek(in, data, unix.SEEK_HOLE)
		if err != nil {
			return fmt.Errorf("finding its holes: %w", err)
		}
		if err := w.extent(in, out, data, min(hole, size)); err != nil {
			return err
		}
		from = hole
	}
	return w.change(func() error { return unix.Ftruncate(out, size) })
}

// extent copies the bytes from one place to another one of a file, in the kernel where both file systems can.
func (w *worker) extent(in, out int, from, to int64) error {
	for at := from; at < to; {
		read, written := at, at
		var n int
		err := w.change(func() (err error) {
			n, err = unix.CopyFileRange(in, &read, out, &written, int(min(to-at, 1<<30)), 0)
			return err
		})
		switch {
		case errors.Is(err, unix.EXDEV), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP),
			err == nil && n == 0:
			return w.readAndWrite(in, out, at, to)
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		}
		at += int64(n)
		w.progress.add(0, int64(n))
	}
	return nil
}

func (w *worker) readAndWrite(in, out int, from, to int64) error {
	if w.buffer == nil {
		w.buffer = make([]byte, bufferSize)
	}
	for at := from; at < to; {
		n, err := unix.Pread(in, w.buffer[:min(to-at, bufferSize)], at)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("reading it: %w", err)
		case n == 0:
			return fmt.Errorf("reading it: it became shorter: %w", io.ErrUnexpectedEOF)
		}
		for part := w.buffer[:n]; len(part) > 0; {
			var wrote int
			err := w.change(func() (err error) {
				wrote, err = unix.Pwrite(out, part, at)
				return err
			})
			if err != nil && !errors.Is(err, unix.EINTR) {
				return err
			}
			wrote = max(wrote, 0)
			part, at = part[wrote:], at+int64(wrote)
		}
		w.progress.add(0, int64(n))
	}
	return nil
}
