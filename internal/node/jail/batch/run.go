// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"
)

// run is one batch on its way.
type run struct {
	*Writer
	stamp time.Time
	steps []*step
}

// step is one file of a batch on its way.
type step struct {
	File
	// temporary is the other name in the directory: of the new file first, and of the old one after an exchange.
	temporary string
	// back returns to the old file; nil while nothing has happened to it.
	back func() error
}

func (r *run) write() error {
	if err := r.makeDirectories(); err != nil {
		return err
	}
	if err := r.each(len(r.steps), func(i int) error { return r.stage(r.steps[i]) }); err != nil {
		return err
	}
	for _, s := range r.steps {
		if err := r.place(s); err != nil {
			return err
		}
	}
	return r.syncDirectories()
}

// makeDirectories makes those that are missing. They stay when the batch is undone.
func (r *run) makeDirectories() error {
	for _, dir := range r.directories() {
		if err := r.makeDirectory(dir); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) makeDirectory(dir string) error {
	info, err := r.Tree.Lstat(dir)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("%s is no directory in the jail but %s: remove it, or name another path", dir, info.Mode())
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := r.makeDirectory(path.Dir(dir)); err != nil {
		return err
	}
	if err := r.Tree.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return r.Tree.SyncDir(path.Dir(dir))
}

// stage writes the new file beside the old one, safe from a crash.
func (r *run) stage(s *step) error {
	file, err := r.Tree.Create(s.temporary, 0o600)
	if err != nil {
		return fmt.Errorf("writing %s: %w", s.Path, err)
	}
	_, err = file.Write(s.Content)
	if err == nil {
		err = file.Chmod(s.Mode)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", s.Path, err)
	}
	return nil
}

// place has the new file take the place of the old one.
func (r *run) place(s *step) error {
	_, err := r.Tree.Lstat(s.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r.placeNew(s)
	case err != nil:
		return err
	}
	err = r.Tree.Exchange(s.temporary, s.Path)
	if errors.Is(err, errors.ErrUnsupported) {
		return r.placeOver(s)
	}
	if err == nil {
		s.back = func() error { return r.Tree.Exchange(s.temporary, s.Path) }
	}
	return err
}

func (r *run) placeNew(s *step) error {
	err := r.Tree.RenameNew(s.temporary, s.Path)
	if errors.Is(err, errors.ErrUnsupported) {
		err = r.Tree.Rename(s.temporary, s.Path)
	}
	if err == nil {
		s.back = func() error { return r.Tree.Remove(s.Path) }
	}
	return err
}

// placeOver replaces a file where names cannot be exchanged. A second name keeps the old one, to return to it.
func (r *run) placeOver(s *step) error {
	old := s.temporary + oldSuffix
	if err := r.Tree.AddName(s.Path, old); err != nil {
		if copied := r.copyOld(s.Path, old); copied != nil {
			return fmt.Errorf("keeping the old file of %s: %w", s.Path, errors.Join(err, copied))
		}
	}
	err := r.Tree.Rename(s.temporary, s.Path)
	if err == nil {
		s.back = func() error { return r.Tree.Rename(old, s.Path) }
	}
	return err
}

// copyOld is for a file that cannot have a second name: it belongs to another user, or the file system has no hard links.
func (r *run) copyOld(from, to string) error {
	info, err := r.Tree.Lstat(from)
	if err != nil {
		return err
	}
	content, err := r.Tree.Read(from)
	if err != nil {
		return err
	}
	return r.stage(&step{File: File{Path: from, Content: content, Mode: info.Mode()}, temporary: to})
}

// undo returns to the old files and removes the new ones.
func (r *run) undo() error {
	var errs []error
	for _, s := range slices.Backward(r.steps) {
		if s.back != nil {
			if err := s.back(); err != nil {
				errs = append(errs, fmt.Errorf("undoing the change of %s: %w", s.Path, err))
				continue // the old one may be under the other name
			}
		}
		for _, name := range []string{s.temporary, s.temporary + oldSuffix} {
			if err := r.Tree.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(append(errs, r.syncDirectories())...)
}

func (r *run) syncDirectories() error {
	for _, dir := range r.directories() {
		if err := r.Tree.SyncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// directories returns the directories of the files that change.
func (r *run) directories() []string {
	files := make([]File, len(r.steps))
	for i, s := range r.steps {
		files[i] = s.File
	}
	return directories(files)
}
