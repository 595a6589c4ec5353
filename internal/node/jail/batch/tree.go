// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/coxswain-hpc/coxswain/internal/node/jail"
)

// Tree is where files are written to. Each method is one call of the kernel, or reads only. Names are absolute.
type Tree interface {
	Lstat(name string) (fs.FileInfo, error)
	Read(name string) ([]byte, error)
	Names(dir string) ([]string, error)
	Mkdir(dir string, mode fs.FileMode) error
	Create(name string, mode fs.FileMode) (Handle, error)
	AddName(from, to string) error
	Rename(from, to string) error
	RenameNew(from, to string) error
	Exchange(a, b string) error
	Remove(name string) error
	SyncDir(dir string) error
}

// Handle is an open file.
type Handle interface {
	io.WriteCloser
	Chmod(mode fs.FileMode) error
	Sync() error
}

// Jail returns the tree of a jail, in which no part of a path may be a symbolic link.
func Jail(root *jail.Root) Tree { return tree{root.WithoutLinks()} }

type tree struct{ root *jail.Root }

// Lstat is part of Tree.
func (t tree) Lstat(name string) (fs.FileInfo, error) { return t.root.Lstat(name) }

// Mkdir is part of Tree.
func (t tree) Mkdir(dir string, mode fs.FileMode) error { return t.root.Mkdir(dir, mode) }

// AddName is part of Tree.
func (t tree) AddName(from, to string) error { return t.root.AddName(from, to) }

// Rename is part of Tree.
func (t tree) Rename(from, to string) error { return t.root.Rename(from, to) }

// RenameNew is part of Tree.
func (t tree) RenameNew(from, to string) error { return t.root.RenameNew(from, to) }

// Exchange is part of Tree.
func (t tree) Exchange(a, b string) error { return t.root.Exchange(a, b) }

// Remove is part of Tree.
func (t tree) Remove(name string) error { return t.root.Remove(name) }

// Create is part of Tree.
func (t tree) Create(name string, mode fs.FileMode) (Handle, error) { return t.root.Create(name, mode) }

// Read is part of Tree.
func (t tree) Read(name string) ([]byte, error) {
	file, err := t.root.Open(name)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(file)
	return content, errors.Join(err, file.Close())
}

// Names is part of Tree.
func (t tree) Names(dir string) ([]string, error) {
	var names []string
	err := t.in(dir, func(d *os.File) (err error) {
		names, err = d.Readdirnames(-1)
		return err
	})
	return names, err
}

// SyncDir is part of Tree.
func (t tree) SyncDir(dir string) error { return t.in(dir, (*os.File).Sync) }

func (t tree) in(dir string, do func(*os.File) error) error {
	file, err := t.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(do(file), file.Close())
}
