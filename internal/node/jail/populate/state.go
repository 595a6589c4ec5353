// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package populate

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lock keeps a second run out of the jail. A lock ends with its process, so that a killed run holds up no other. The pod of a Job that was
// deleted may go on for as long as its kubelet gives it, so the run of the next Job waits for it.
func (c *copier) lock() (unlock func() error, err error) {
	const often = 100 * time.Millisecond
	tick, patience := time.NewTicker(often), time.NewTimer(c.Patience)
	defer tick.Stop()
	defer patience.Stop()
	for told := false; ; {
		unlock, err := c.tryLock()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return unlock, err
		}
		if !told {
			c.log("Another populate-jail is writing to %s; waiting for its end", c.Jail)
			told = true
		}
		select {
		case <-tick.C:
		case <-patience.C:
			return nil, err
		}
	}
}

// tryLock is lock without patience: its error is unix.EWOULDBLOCK while another run has the jail.
func (c *copier) tryLock() (unlock func() error, err error) {
	for {
		fd, err := unix.Openat(c.jail, lockName, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
		if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
			if err := c.clear(c.jail, lockName); err != nil { // no run has made a directory, a link or a socket
				return nil, c.at(lockName, err)
			}
			continue
		}
		if err != nil {
			return nil, c.at(lockName, err)
		}
		if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
			return nil, errors.Join(fmt.Errorf("another populate-jail is writing to %s: locking %s: %w", c.Jail, lockName, err), unix.Close(fd))
		}
		var held, named unix.Stat_t
		err = errors.Join(unix.Fstat(fd, &held), unix.Fstatat(c.jail, lockName, &named, unix.AT_SYMLINK_NOFOLLOW))
		if err == nil && held.Ino == named.Ino {
			return func() error {
				err := c.change(func() error { return unix.Unlinkat(c.jail, lockName, 0) })
				return errors.Join(err, unix.Close(fd))
			}, nil
		}
		// The run before this one has just ended, and taken the file away.
		if err := unix.Close(fd); err != nil {
			return nil, fmt.Errorf("locking %s: %w", c.Jail, err)
		}
	}
}

// readState finds out what the jail is, and returns the mode in which it is to be filled; empty if it is not.
func (c *copier) readState() (mode string, err error) {
	complete, err := c.complete()
	if err != nil {
		return "", err
	}
	under, marked, err := c.marker()
	switch {
	case err != nil:
		return "", err
	case marked:
		c.again = true
		// Programs before this one left the marker empty.
		if under != modeFirst && (complete || c.Overwrite || under == modeOverwrite) {
			return modeOverwrite, nil
		}
		return modeFirst, nil
	case complete && !c.Overwrite:
		c.log("%s is complete", c.Jail)
		return "", nil
	case complete:
		return modeOverwrite, nil
	}
	stranger, err := c.stranger()
	switch {
	case err != nil:
		return "", err
	case stranger == "":
		return modeFirst, nil
	case c.Overwrite:
		return modeOverwrite, nil
	case exists(c.jail, "etc") && exists(c.jail, "usr"):
		c.log("%s was populated by something else and is left as it is; OVERWRITE=1 copies over it", c.Jail)
		return "", nil
	}
	return "", fmt.Errorf("%s holds %s but no root file system; empty the volume, or set OVERWRITE=1", c.Jail, stranger)
}

func (c *copier) complete() (bool, error) {
	file, err := c.root.Path(Sentinel)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, file.Close()
}

// marker reads the marker.
func (c *copier) marker() (mode string, marked bool, err error) {
	var st unix.Stat_t
	err = unix.Fstatat(c.jail, Marker, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT):
		return "", false, nil
	case err != nil:
		return "", false, c.at(Marker, err)
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return "", false, nil // no run has made it
	}
	file, err := c.root.Open(Marker)
	if err != nil {
		return "", false, err
	}
	content, err := io.ReadAll(io.LimitReader(file, 64))
	if err = errors.Join(err, file.Close()); err != nil {
		return "", false, fmt.Errorf("reading %s of the jail: %w", Marker, err)
	}
	return strings.TrimSpace(string(content)), true, nil
}

// stranger returns a name in the jail that neither a new file system nor this program has made; empty if there is none.
func (c *copier) stranger() (string, error) {
	names, err := list(c.jail)
	if err != nil {
		return "", fmt.Errorf("listing %s: %w", c.Jail, err)
	}
	for _, name := range names {
		if name != "lost+found" && !strings.HasPrefix(name, temporaryPrefix) {
			return name, nil
		}
	}
	return "", nil
}

// sweep takes away what a run that was killed left in a directory.
func (c *copier) sweep(d *directory) error {
	names, err := list(d.target)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, temporaryPrefix) || name == lockName {
			continue
		}
		err := c.change(func() error { return unix.Unlinkat(d.target, name, 0) })
		if err != nil && !errors.Is(err, unix.EISDIR) { // no run leaves a directory
			return fmt.Errorf("removing %s, which an interrupted run left: %w", name, err)
		}
	}
	return nil
}

// maxAside is how many names are tried for a directory that is moved aside.
const maxAside = 1000

// clear removes what has a name of ours in a directory; nothing there is no error. A directory is not ours, so it is moved
// aside with all that is in it.
func (c *copier) clear(dir int, name string) error {
	err := c.change(func() error { return unix.Unlinkat(dir, name, 0) })
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case !errors.Is(err, unix.EISDIR):
		return err
	}
	for n := range maxAside {
		// Over anything but an empty directory the kernel refuses.
		aside := fmt.Sprintf("%s%s.aside.%d", temporaryPrefix, strings.TrimPrefix(name, temporaryPrefix), n)
		err = c.change(func() error { return unix.Renameat(dir, name, dir, aside) })
		switch {
		case err == nil:
			c.log("Moved the directory %s aside, which has the name of a file of populate-jail; it is now %s", name, aside)
			return nil
		case !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.ENOTDIR):
			return err
		}
	}
	return fmt.Errorf("moving the directory %s aside: %w", name, err)
}
