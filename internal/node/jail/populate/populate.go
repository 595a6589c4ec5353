// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package populate fills a jail, the root file system that login pods and workers share, with a copy of another root file
// system.
//
// Jobs may be running in the jail meanwhile: each file is written under a temporary name and renamed, so that they see the old
// one or the new one. A run that is killed at any point is continued by the next. Until the sentinel is written, which is the last
// thing, the marker shows that the jail is not whole.
//
// Users own the tree. Every call names one entry of a directory that is open, and follows no symbolic link; what is resolved
// by a longer path is resolved by package jail.
package populate

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/jail"
)

const (
	// Sentinel is the file of a jail that is whole.
	Sentinel = "etc/soperator-jail-populated"
	// Marker is the file of a jail that is not whole yet. Its content is the mode of the run.
	Marker = ".populating"
	// temporaryPrefix begins the names of files that no user is meant to see.
	temporaryPrefix = Marker + "-"
	lockName        = temporaryPrefix + "lock"
)

// The modes of a run, as the marker has them.
const (
	modeFirst     = "first"
	modeOverwrite = "overwrite"
)

// Options are what is copied where.
type Options struct {
	// Source and Jail are directories.
	Source, Jail string
	// Overwrite copies over a jail that is whole, or that something else has filled.
	Overwrite bool
	// Exclude are paths of the source that are not copied.
	Exclude []string
	// MountPoints are directories that are made in addition to those of every jail.
	MountPoints []string
	// SlurmDir is where logins and jobs see Slurm's programs, and SlurmPrograms are the names of those that become symbolic
	// links from /usr/bin to it.
	SlurmDir      string
	SlurmPrograms []string
	// Workers is how many files are copied at a time.
	Workers int
	// Patience is how long to wait for the end of another run that writes to the jail.
	Patience time.Duration
	// Now is the time in the sentinel.
	Now time.Time
	// Log logs what is worth knowing.
	Log func(format string, args ...any)
}

// Progress counts what is copied. It may be read at any time.
type Progress struct{ files, bytes atomic.Int64 }

func (p *Progress) add(files, bytes int64) {
	p.files.Add(files)
	p.bytes.Add(bytes)
}

// Files returns the number of files, directories and links that are in place.
func (p *Progress) Files() int64 { return p.files.Load() }

// Bytes returns the number of bytes that were copied.
func (p *Progress) Bytes() int64 { return p.bytes.Load() }

// copier is one run.
type copier struct {
	Options
	source, jail int
	root         *jail.Root
	progress     *Progress
	// mount is the mount of the source: what else is mounted in it is not copied.
	mount uint64
	// keep leaves alone what belongs to users; again is true if a run before this one was killed.
	keep, again bool
	links       links
	told        sync.Map
	// step is called before each change of the jail. A test ends a run by it at any of them.
	step func() error
}

// Run fills the jail.
func Run(o Options, progress *Progress) error { return run(o, progress, func() error { return nil }) }

func run(o Options, progress *Progress, step func() error) (err error) {
	c := &copier{Options: o, progress: progress, step: step, links: links{first: map[[2]uint64]*first{}}}
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
	if c.jail, err = unix.Open(o.Jail, flags, 0); err != nil {
		return fmt.Errorf("opening the jail at %s: %w", o.Jail, err)
	}
	defer func() { err = errors.Join(err, unix.Close(c.jail)) }()
	if c.root, err = jail.Open(o.Jail); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.root.Close()) }()
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	mode, err := c.readState()
	if err != nil {
		return err
	}
	if mode == "" {
		return c.mountPoints()
	}
	if c.source, err = unix.Open(o.Source, flags, 0); err != nil {
		return fmt.Errorf("opening the root file system to copy: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Close(c.source)) }()
	return c.fill(mode)
}

// fill copies everything. The marker is there from before the first change until after the sentinel.
func (c *copier) fill(mode string) error {
	if err := c.checkSource(); err != nil {
		return err
	}
	c.keep = mode == modeOverwrite
	if err := c.file(c.jail, Marker, mode+"\n"); err != nil {
		return c.at(Marker, err)
	}
	for _, part := range []func() error{func() error { return c.tree(max(1, c.Workers)) }, c.mountPoints, c.slurmLinks, c.sync, c.sentinel} {
		if err := part(); err != nil {
			return err
		}
	}
	if err := c.change(func() error { return unix.Unlinkat(c.jail, Marker, 0) }); err != nil {
		return c.at(Marker, err)
	}
	return c.sync()
}

// checkSource refuses what is no root file system, or not a whole one.
func (c *copier) checkSource() error {
	for _, name := range []string{"etc", "usr"} {
		if !exists(c.source, name) {
			return fmt.Errorf("%s has no directory %s: it is no root file system to fill a jail with", c.Source, name)
		}
	}
	if exists(c.source, Marker) {
		return fmt.Errorf("%s is a jail whose copy was interrupted (it has a file %s); it cannot fill another one", c.Source, Marker)
	}
	return nil
}

// sync waits until everything is on the disk.
func (c *copier) sync() error {
	if err := c.change(func() error { return unix.Syncfs(c.jail) }); err != nil {
		return fmt.Errorf("writing the jail to its disk: %w", err)
	}
	return nil
}

func (c *copier) sentinel() error {
	dir, err := c.root.Path(path.Dir(Sentinel))
	if err != nil {
		return err
	}
	err = c.file(int(dir.Fd()), path.Base(Sentinel), c.Now.UTC().Format(time.RFC3339)+"\n")
	return errors.Join(c.at(Sentinel, err), dir.Close())
}

// file writes a small file so that it is there as a whole or not at all.
func (c *copier) file(dir int, name, content string) error {
	const temporary = temporaryPrefix + "new"
	err := c.clear(dir, temporary)
	if err != nil {
		return err
	}
	var out int
	err = c.change(func() (err error) {
		out, err = unix.Openat(dir, temporary, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
		return err
	})
	if err != nil {
		return err
	}
	err = c.change(func() error {
		_, err := unix.Write(out, []byte(content))
		return err
	})
	if err == nil {
		err = c.change(func() error { return unix.Fsync(out) })
	}
	if err = errors.Join(err, unix.Close(out)); err != nil {
		return err
	}
	err = c.change(func() error { return unix.Renameat(dir, temporary, dir, name) })
	if !errors.Is(err, unix.EISDIR) {
		return err
	}
	if err := c.clear(dir, name); err != nil {
		return err
	}
	return c.change(func() error { return unix.Renameat(dir, temporary, dir, name) })
}

// change makes one change of the jail.
func (c *copier) change(call func() error) error {
	if err := c.step(); err != nil {
		return err
	}
	return call()
}

// pathError is an error with its path in the jail.
type pathError struct {
	rel string
	err error
}

func (e *pathError) Error() string {
	switch {
	case errors.Is(e.err, unix.ENOSPC), errors.Is(e.err, unix.EDQUOT):
		return fmt.Sprintf("the jail is full; enlarge its volume or remove files from it, and the copy continues where it stopped: writing /%s: %v", e.rel, e.err)
	case errors.Is(e.err, unix.EROFS):
		return fmt.Sprintf("the jail is read-only; mount its volume for writing: writing /%s: %v", e.rel, e.err)
	}
	return fmt.Sprintf("copying /%s: %v", e.rel, e.err)
}

func (e *pathError) Unwrap() error { return e.err }

func (c *copier) at(rel string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*pathError](err); ok {
		return err
	}
	return &pathError{rel: strings.TrimPrefix(rel, "/"), err: err}
}

// log logs what is worth knowing.
func (c *copier) log(format string, args ...any) {
	if c.Log != nil {
		c.Log(format, args...)
	}
}
