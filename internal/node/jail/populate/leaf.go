// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package populate

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// leaf copies what is no directory.
func (w *worker) leaf(d *directory, name string, st *unix.Statx_t) error {
	var have unix.Stat_t
	there := false
	if !d.fresh {
		err := unix.Fstatat(d.target, name, &have, unix.AT_SYMLINK_NOFOLLOW)
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
		there = err == nil
	}
	if st.Nlink > 1 {
		return w.linked(d, name, st, there, &have)
	}
	if there && w.same(d, name, st, &have) {
		return nil
	}
	return w.write(d, name, st, there && have.Mode&unix.S_IFMT == unix.S_IFDIR)
}

// same reports whether the jail has an entry already. A file whose copy was interrupted has another time.
func (w *worker) same(d *directory, name string, st *unix.Statx_t, have *unix.Stat_t) bool {
	if uint32(st.Mode) != have.Mode || st.Uid != have.Uid || st.Gid != have.Gid {
		return false
	}
	switch have.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return int64(st.Size) == have.Size && st.Mtime.Sec == have.Mtim.Sec && int64(st.Mtime.Nsec) == have.Mtim.Nsec //nolint:gosec // no file has 8 EiB
	case unix.S_IFLNK:
		want, err := readlink(d.source, name, st.Size)
		is, err2 := readlink(d.target, name, st.Size)
		return err == nil && err2 == nil && want == is
	case unix.S_IFBLK, unix.S_IFCHR:
		return unix.Mkdev(st.Rdev_major, st.Rdev_minor) == have.Rdev
	}
	return true
}

// write makes the copy under a temporary name and puts it in place.
func (w *worker) write(d *directory, name string, st *unix.Statx_t, replacesDirectory bool) error {
	var err error
	switch uint32(st.Mode) & unix.S_IFMT {
	case unix.S_IFREG:
		err = w.regular(d, name, st)
	case unix.S_IFLNK:
		err = w.symlink(d, name, st)
	default:
		err = w.special(d, st)
	}
	if err != nil {
		return err
	}
	return w.place(d.target, name, replacesDirectory)
}

// place gives what has the temporary name its own.
func (w *worker) place(dir int, name string, replacesDirectory bool) error {
	if replacesDirectory {
		if err := w.change(func() error { return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) }); err != nil {
			return fmt.Errorf("it is a directory in the jail and none in the image, move it away: %w", err)
		}
	}
	return w.change(func() error { return unix.Renameat(dir, w.temporary, dir, name) })
}

// createTemp runs a function that makes the temporary name, once more if a run that was killed has left it.
func (w *worker) createTemp(dir int, create func() error) error {
	err := w.change(create)
	if !errors.Is(err, unix.EEXIST) {
		return err
	}
	if err := w.clear(dir, w.temporary); err != nil {
		return err
	}
	return w.change(create)
}

func (w *worker) regular(d *directory, name string, st *unix.Statx_t) (err error) {
	in, err := unix.Openat(d.source, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(in)) }()
	var out int
	err = w.createTemp(d.target, func() (err error) {
		out, err = unix.Openat(d.target, w.temporary, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		return err
	})
	if err != nil {
		return err
	}
	err = w.content(in, out, st)
	if err == nil {
		err = w.setAttributes(in, out, d.target, st)
	}
	// A network file system may report only now that it is full.
	return errors.Join(err, unix.Close(out))
}

// setAttributes gives a file its owner, mode, attributes and times, in this order: a new owner takes away set-user-ID bits
// and capabilities.
func (w *worker) setAttributes(in, out, dir int, st *unix.Statx_t) error {
	if err := w.change(func() error { return unix.Fchown(out, int(st.Uid), int(st.Gid)) }); err != nil {
		return err
	}
	if err := w.change(func() error { return unix.Fchmod(out, uint32(st.Mode)&0o7777) }); err != nil {
		return err
	}
	if err := w.attributes(in, out); err != nil {
		return err
	}
	return w.change(func() error { return unix.UtimesNanoAt(dir, w.temporary, times(st), unix.AT_SYMLINK_NOFOLLOW) })
}

func (w *worker) symlink(d *directory, name string, st *unix.Statx_t) error {
	to, err := readlink(d.source, name, st.Size)
	if err != nil {
		return err
	}
	if err := w.createTemp(d.target, func() error { return unix.Symlinkat(to, d.target, w.temporary) }); err != nil {
		return err
	}
	return w.setOwnerAndTimes(d.target, st)
}

// special makes devices, pipes and sockets.
func (w *worker) special(d *directory, st *unix.Statx_t) error {
	device := unix.Mkdev(st.Rdev_major, st.Rdev_minor)
	err := w.createTemp(d.target, func() error { return unix.Mknodat(d.target, w.temporary, uint32(st.Mode), int(device)) }) //nolint:gosec // numbers of devices have 32 bits
	if err != nil {
		return err
	}
	return w.setOwnerAndTimes(d.target, st)
}

// setOwnerAndTimes gives what cannot be opened its owner and times.
func (w *worker) setOwnerAndTimes(dir int, st *unix.Statx_t) error {
	err := w.change(func() error {
		return unix.Fchownat(dir, w.temporary, int(st.Uid), int(st.Gid), unix.AT_SYMLINK_NOFOLLOW)
	})
	if err != nil {
		return err
	}
	if uint32(st.Mode)&unix.S_IFMT != unix.S_IFLNK {
		if err := w.change(func() error { return chmod(dir, w.temporary, uint32(st.Mode)&0o7777) }); err != nil {
			return err
		}
	}
	return w.change(func() error { return unix.UtimesNanoAt(dir, w.temporary, times(st), unix.AT_SYMLINK_NOFOLLOW) })
}

// links are the files with several names, by device and inode of the source.
type links struct {
	mu    sync.Mutex
	first map[[2]uint64]*first
}

// first is the first name that was met of a file with several.
type first struct {
	// done is closed when it is in the jail, or when that failed.
	done  chan struct{}
	rel   string
	inode uint64
	err   error
}

// linked copies a file with several names: the first as every other, and of the others each as a link to it.
func (w *worker) linked(d *directory, name string, st *unix.Statx_t, there bool, have *unix.Stat_t) error {
	key := [2]uint64{unix.Mkdev(st.Dev_major, st.Dev_minor), st.Ino}
	w.links.mu.Lock()
	other, met := w.links.first[key]
	if !met {
		other = &first{done: make(chan struct{}), rel: d.path(name)}
		w.links.first[key] = other
	}
	w.links.mu.Unlock()
	isDirectory := there && have.Mode&unix.S_IFMT == unix.S_IFDIR
	if !met {
		defer close(other.done)
		if !there || !w.same(d, name, st, have) {
			if other.err = w.write(d, name, st, isDirectory); other.err != nil {
				return other.err
			}
		}
		var now unix.Stat_t
		other.err = unix.Fstatat(d.target, name, &now, unix.AT_SYMLINK_NOFOLLOW)
		other.inode = now.Ino
		return other.err
	}
	<-other.done
	if other.err != nil || there && have.Ino == other.inode {
		return other.err // renaming a file to another name of itself would leave both
	}
	dir, err := w.parentOf(other.rel)
	if err != nil {
		return err
	}
	err = w.createTemp(d.target, func() error { return unix.Linkat(dir, base(other.rel), d.target, w.temporary, 0) })
	if err = errors.Join(err, unix.Close(dir)); err != nil {
		return err
	}
	return w.place(d.target, name, isDirectory)
}

// parentOf opens the directory of a path of the jail. No part of it may be a symlink: this run has made or seen them all.
func (c *copier) parentOf(rel string) (int, error) {
	dir := "."
	if cut := strings.LastIndexByte(rel, '/'); cut >= 0 {
		dir = rel[:cut]
	}
	return unix.Openat2(c.jail, dir, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	})
}
