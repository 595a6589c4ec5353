// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package home makes the home directory of a user who logs in and has none in the jail. PAM's own pam_mkhomedir(8) would
// make it in the pod, where sshd opens the session, and would follow whatever links the jail has there.
package home

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/jail"
)

const (
	// skeleton is the directory of the jail whose files a new home has, see useradd(8).
	skeleton = "/etc/skel"
	// homeMode is the mode of a new home, HOME_MODE of Debian's login.defs(5).
	homeMode = 0o700
	// unfinishedMode is the mode of a home while it is made: closed, and with a sticky bit, which distinguishes it from one that an
	// administrator has closed to its user.
	unfinishedMode = fs.ModeSticky | homeMode
	// maxFiles and maxFileSize are how many files of the skeleton are copied, and how large each is at most.
	maxFiles    = 1000
	maxFileSize = 16 << 20
)

// Account is whose home it is.
type Account struct {
	// Home is a path of the jail.
	Home     string
	UID, GID int
}

// Make makes the home and reports whether it did. A home that is there is left alone, whoever owns it. One whose maker was
// interrupted belongs to root, is closed to all others and has the sticky bit: it is finished.
func Make(root *jail.Root, a Account) (bool, error) {
	switch {
	case !path.IsAbs(a.Home) || path.Clean(a.Home) == "/":
		return false, fmt.Errorf("making the home %q: it must be an absolute path, and not the root", a.Home)
	case a.UID <= 0 || a.GID < 0:
		return false, fmt.Errorf("making the home %s: uid %d, gid %d are not a user's", a.Home, a.UID, a.GID)
	}
	if wanted, err := ensure(root, path.Clean(a.Home)); err != nil || !wanted {
		return false, err
	}
	within, err := root.Sub(a.Home)
	if err != nil {
		return false, err
	}
	defer func() { _ = within.Close() }()
	m := &maker{jail: root, home: within.WithoutLinks(), account: a, left: maxFiles}
	// The owner is changed last, so that a home whose maker is interrupted can be distinguished from a finished one.
	if err := m.copyDir("/"); err != nil {
		return false, err
	}
	dir, err := within.Open("/")
	if err != nil {
		return false, err
	}
	if err := errors.Join(dir.Chown(a.UID, a.GID), dir.Chmod(homeMode), dir.Close()); err != nil {
		return false, fmt.Errorf("giving the home %s to its user: %w", a.Home, err)
	}
	return true, nil
}

// ensure makes the directory with those above it, and reports whether it is to be filled.
func ensure(root *jail.Root, home string) (bool, error) {
	there, err := root.Path(home)
	if err == nil {
		defer func() { _ = there.Close() }()
		var stat unix.Stat_t
		if err := unix.Fstat(int(there.Fd()), &stat); err != nil {
			return false, fmt.Errorf("looking at %s of the jail: %w", home, err)
		}
		unfinished := stat.Mode&unix.S_IFMT == unix.S_IFDIR && stat.Uid == 0 && stat.Mode&0o7777 == unix.S_ISVTX|homeMode
		return unfinished, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	var missing []string
	for dir := path.Dir(home); dir != "/"; dir = path.Dir(dir) {
		missing = append(missing, dir)
	}
	for _, dir := range slices.Backward(missing) {
		if err := root.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return false, err
		}
	}
	if err := root.Mkdir(home, unfinishedMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return false, err
	}
	return true, nil
}

// maker fills a home.
type maker struct {
	jail, home *jail.Root
	account    Account
	left       int
}

// copyDir copies a directory of the skeleton; at is its path in the home.
func (m *maker) copyDir(at string) error {
	dir, err := m.jail.Open(path.Join(skeleton, at))
	if errors.Is(err, fs.ErrNotExist) && at == "/" {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	entries, err := dir.ReadDir(maxFiles + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading %s of the jail: %w", path.Join(skeleton, at), err)
	}
	for _, entry := range entries {
		if m.left--; m.left < 0 {
			return fmt.Errorf("%s of the jail has more than %d files", skeleton, maxFiles)
		}
		if err := m.copy(path.Join(at, entry.Name()), entry.Type()); err != nil {
			return err
		}
	}
	return nil
}

// copy copies one entry. The owner is changed of nothing but what this process, or a maker that was interrupted, has made: the
// user may be in the home already, with another login.
func (m *maker) copy(at string, kind fs.FileMode) error {
	switch kind {
	case fs.ModeDir:
		if err := m.home.Mkdir(at, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := m.copyDir(at); err != nil {
			return err
		}
	case fs.ModeSymlink:
		to, err := m.jail.Link(path.Join(skeleton, at))
		if err != nil {
			return err
		}
		if err := m.home.Symlink(to, at); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	case 0:
		return m.copyFile(at)
	default: // A device or a socket is no part of a home.
		return nil
	}
	if ours, err := m.isRoots(at); err != nil || !ours {
		return err
	}
	return m.home.Chown(at, m.account.UID, m.account.GID)
}

func (m *maker) copyFile(at string) error {
	name := path.Join(skeleton, at)
	from, err := m.jail.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	info, err := from.Stat()
	if err != nil {
		return fmt.Errorf("looking at %s of the jail: %w", name, err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxFileSize {
		return fmt.Errorf("%s of the jail is no file of at most %d bytes", name, maxFileSize)
	}
	to, err := m.create(at)
	if err != nil || to == nil {
		return err
	}
	_, err = io.Copy(to, io.LimitReader(from, maxFileSize))
	if err := errors.Join(err, to.Chmod(info.Mode().Perm()), to.Chown(m.account.UID, m.account.GID), to.Close()); err != nil {
		return fmt.Errorf("writing %s in the home %s: %w", at, m.account.Home, err)
	}
	return nil
}

// create opens a new file in the home; nil if the user has one. One of root's was left by a maker that was interrupted.
func (m *maker) create(at string) (*os.File, error) {
	file, err := m.home.Create(at, 0o600)
	if !errors.Is(err, fs.ErrExist) {
		return file, err
	}
	ours, err := m.isRoots(at)
	if err != nil || !ours {
		return nil, err
	}
	if err := m.home.Remove(at); err != nil {
		return nil, err
	}
	return m.home.Create(at, 0o600)
}

func (m *maker) isRoots(at string) (bool, error) {
	info, err := m.home.Lstat(at)
	if err != nil {
		return false, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == 0, nil
}
