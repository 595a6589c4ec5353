// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package batch writes files into a jail so that a reader sees the old or the new one, and never a part.
//
// Each file is written under another name in the same directory, and synced. When all are there, each takes the place of the old
// one by exchanging names. An error before the end undoes all of it. A crash leaves each file old or new, and files whose names
// show whose they are; the next batch in the directory removes these.
package batch

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// File is a file as it shall be.
type File struct {
	// Path is absolute.
	Path    string
	Content []byte
	Mode    fs.FileMode
}

// Writer writes batches.
type Writer struct {
	Tree Tree
	// Lag is how long an old file stays after it was replaced, for machines whose caches still lead to it.
	Lag time.Duration
	Now func() time.Time
	// Parallel is how many files are written at once. Most of the time is spent in waiting for disks.
	Parallel int
}

// Changed returns the paths of the files that are not yet as they shall be.
func (w *Writer) Changed(files []File) ([]string, error) {
	if err := check(files); err != nil {
		return nil, err
	}
	different := make([]bool, len(files))
	err := w.each(len(files), func(i int) (err error) {
		different[i], err = w.differs(files[i])
		return err
	})
	var paths []string
	for i, f := range files {
		if different[i] {
			paths = append(paths, f.Path)
		}
	}
	return paths, err
}

// Write writes the files, all or none, and returns the paths of those that have changed. Old files and what a crash
// left stay in the directories until the returned time, when Clean is to be called; zero when there are none.
func (w *Writer) Write(files []File) (changed []string, until time.Time, err error) {
	if changed, err = w.Changed(files); err != nil {
		return nil, time.Time{}, explain(err)
	}
	if len(changed) == 0 {
		until, err = w.Clean(files)
		return nil, until, err
	}
	b := &run{Writer: w, stamp: w.Now()}
	for _, f := range files {
		if slices.Contains(changed, f.Path) {
			b.steps = append(b.steps, &step{File: f, temporary: temporary(f.Path, b.stamp, len(b.steps))})
		}
	}
	if err := b.write(); err != nil {
		return nil, time.Time{}, explain(errors.Join(err, b.undo()))
	}
	until, err = w.Clean(files)
	if err != nil { // they are written: what is left is for the next time
		return changed, w.Now(), nil //nolint:nilerr // Clean tells it when it is called alone
	}
	return changed, until, nil
}

// Clean removes old files that are due and what a crash left beside files, and returns when to come again.
func (w *Writer) Clean(files []File) (until time.Time, err error) {
	var errs []error
	for _, dir := range directories(files) {
		next, err := w.cleanDirectory(dir)
		if err != nil {
			errs = append(errs, err)
		}
		if !next.IsZero() && (until.IsZero() || next.After(until)) {
			until = next
		}
	}
	return until, explain(errors.Join(errs...))
}

func (w *Writer) cleanDirectory(dir string) (until time.Time, err error) {
	names, err := w.Tree.Names(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	now := w.Now()
	for _, name := range names {
		stamp, ours := stampOf(name)
		if !ours {
			continue
		}
		// A stamp of the future is from another clock, and does not count.
		if due := stamp.Add(w.Lag); due.After(now) && !stamp.After(now) {
			until = due
			continue
		}
		err := w.Tree.Remove(path.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EISDIR) { // no batch makes a directory with such a name
			return until, err
		}
	}
	return until, nil
}

// differs reports whether a file is not as it shall be. What is no file is an error.
func (w *Writer) differs(f File) (bool, error) {
	info, err := w.Tree.Lstat(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, err
	case info.Mode().Type() == fs.ModeSymlink:
		return false, fmt.Errorf("%s is a symbolic link in the jail: remove it, or name the path of a file", f.Path)
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("%s is no file in the jail but %s: remove it, or name another path", f.Path, info.Mode())
	case info.Mode() != f.Mode || info.Size() != int64(len(f.Content)):
		return true, nil
	}
	content, err := w.Tree.Read(f.Path)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return !bytes.Equal(content, f.Content), err
}

// each does something n times, several at once, and returns all errors.
func (w *Writer) each(n int, do func(i int) error) error {
	var wg sync.WaitGroup
	errs, places := make([]error, n), make(chan struct{}, max(1, w.Parallel))
	for i := range n {
		places <- struct{}{}
		wg.Go(func() {
			errs[i] = do(i)
			<-places
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// directories returns those that files are in, sorted.
func directories(files []File) []string {
	var dirs []string
	for _, f := range files {
		dirs = append(dirs, path.Dir(f.Path))
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// check refuses paths that are not plain.
func check(files []File) error {
	seen := make(map[string]bool, len(files))
	for _, f := range files {
		switch {
		case !strings.HasPrefix(f.Path, "/"):
			return fmt.Errorf("the path %q of a file is not absolute", f.Path)
		case strings.ContainsAny(f.Path, "\x00\r\n"):
			return fmt.Errorf("the path %q of a file has characters that a path must not have", f.Path)
		case path.Clean(f.Path) != f.Path || f.Path == "/":
			return fmt.Errorf("the path %q of a file has empty parts, . or .., or ends in /: write it as %s", f.Path, path.Clean(f.Path))
		case seen[f.Path]:
			return fmt.Errorf("the path %s is that of two files", f.Path)
		}
		if _, ours := stampOf(f.Path); ours {
			return fmt.Errorf("the path %s is like those of files on their way: name it otherwise", f.Path)
		}
		seen[f.Path] = true
	}
	return nil
}
