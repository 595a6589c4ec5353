// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/jailedconfig"
	"github.com/coxswain-hpc/coxswain/internal/node/jail"
	"github.com/coxswain-hpc/coxswain/internal/node/jail/batch"
)

// fileSystem is what is peculiar to the file system of a jail.
type fileSystem struct {
	// lag is how long other machines may be led to old files.
	lag time.Duration
	// plain is one that cannot exchange names.
	plain bool
}

// jailed is a directory into which files are written, and what is known of them.
type jailed struct {
	fileSystem
	dir  string
	tree batch.Tree

	mu sync.Mutex
	// trouble returns what becomes of each call; nil: nothing is wrong.
	trouble func(op string) error
	// stuck is closed when the file system answers again; nil: it answers.
	stuck chan struct{}
	// versions are how often each ConfigMap has been written by the user.
	versions map[string]int
	// kept are paths at which a file is from now on, and read is what slurmctld and the slurmds have read last.
	kept, read map[string]string
}

// mount makes the jail of a world whose program writes files, and the slurmds that read them.
func (w *world) mount(system fileSystem) {
	w.t.Helper()
	dir, err := os.MkdirTemp("", "jail")
	if err != nil {
		w.t.Fatal(err)
	}
	root, err := jail.Open(dir)
	if err != nil {
		w.t.Fatal(err)
	}
	context.AfterFunc(w.ctx, func() { _ = errors.Join(root.Close(), os.RemoveAll(dir)) })
	w.jail = &jailed{fileSystem: system, dir: dir, tree: batch.Jail(root), versions: map[string]int{}}
	w.slurm.Register(slurmds()...)
}

// writer makes the manager of sconfigcontroller.
func (w *world) writer(p *process, kubernetes *rest.Config, options ctrl.Options) (ctrl.Manager, error) {
	options.Scheme = scheme()
	options.Cache = cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}}
	mgr, err := ctrl.NewManager(kubernetes, options)
	if err != nil {
		return nil, err
	}
	return mgr, jailedconfig.Setup(mgr, jailedconfig.Options{
		Writer: &batch.Writer{Tree: &jailTap{w, p}, Lag: w.jail.lag, Now: time.Now, Parallel: 4},
		Slurm:  func(context.Context) (jailedconfig.Slurm, error) { return w.slurmrestd(p) },
		Wait:   time.Minute, Poll: 20 * time.Second, RetryFirst: 15 * time.Second, RetryLast: time.Minute, Concurrency: 1, Clock: clock.RealClock{},
	})
}

// jailTap records and disturbs what a process does to the files of its jail. Of the calls only those that write are counted.
type jailTap struct {
	world   *world
	process *process
}

// reach returns what is wrong with the file system, when it answers.
func (t *jailTap) reach(op string) error {
	j := t.world.jail
	for t.process.ctx.Err() == nil {
		j.mu.Lock()
		stuck, trouble := j.stuck, j.trouble
		j.mu.Unlock()
		switch {
		case stuck != nil:
			select {
			case <-stuck:
			case <-t.process.ctx.Done():
			}
		case trouble != nil:
			return trouble(op)
		default:
			return nil
		}
	}
	return errDead
}

// write carries out a call that changes something, unless something is to go wrong with it.
func (t *jailTap) write(op, name string, do func() error) error {
	time.Sleep(time.Millisecond)
	if err := t.reach(op); err != nil {
		return err
	}
	c := call{process: t.process, to: "jail", method: op, path: name, at: time.Since(t.world.start)}
	v := t.world.number(&c)
	c.outcome = v.name
	if v.fail != nil {
		t.world.note(c)
		return v.fail
	}
	if err := t.reach(op); err != nil { // it may have begun with this call
		t.world.note(c)
		return err
	}
	err := do()
	c.applied = err == nil
	t.world.judgeFiles(c)
	t.world.note(c)
	if v.then != nil {
		v.then()
	}
	if t.process.ctx.Err() != nil {
		return errDead
	}
	if err == nil && v.lose {
		return unix.EIO
	}
	return err
}

func (t *jailTap) tree() batch.Tree { return t.world.jail.tree }

// Lstat is part of batch.Tree.
func (t *jailTap) Lstat(name string) (fs.FileInfo, error) {
	if err := t.reach("lstat"); err != nil {
		return nil, err
	}
	return t.tree().Lstat(name)
}

// Read is part of batch.Tree.
func (t *jailTap) Read(name string) ([]byte, error) {
	if err := t.reach("read"); err != nil {
		return nil, err
	}
	return t.tree().Read(name)
}

// Names is part of batch.Tree.
func (t *jailTap) Names(dir string) ([]string, error) {
	if err := t.reach("names"); err != nil {
		return nil, err
	}
	return t.tree().Names(dir)
}

// Mkdir is part of batch.Tree.
func (t *jailTap) Mkdir(dir string, mode fs.FileMode) error {
	return t.write("mkdir", dir, func() error { return t.tree().Mkdir(dir, mode) })
}

// Create is part of batch.Tree.
func (t *jailTap) Create(name string, mode fs.FileMode) (handle batch.Handle, err error) {
	err = t.write("create", name, func() (err error) { handle, err = t.tree().Create(name, mode); return err })
	if err != nil && handle != nil {
		_ = handle.Close() // it was made, and who made it does not hear of it
	}
	return &jailHandle{handle, t, name}, err
}

// AddName is part of batch.Tree.
func (t *jailTap) AddName(from, to string) error {
	return t.write("link", to, func() error { return t.tree().AddName(from, to) })
}

// Rename is part of batch.Tree.
func (t *jailTap) Rename(from, to string) error {
	return t.write("rename", to, func() error { return t.tree().Rename(from, to) })
}

// RenameNew is part of batch.Tree.
func (t *jailTap) RenameNew(from, to string) error {
	if t.world.jail.plain {
		return errors.ErrUnsupported
	}
	return t.write("rename", to, func() error { return t.tree().RenameNew(from, to) })
}

// Exchange is part of batch.Tree.
func (t *jailTap) Exchange(a, b string) error {
	if t.world.jail.plain {
		return errors.ErrUnsupported
	}
	return t.write("exchange", b, func() error { return t.tree().Exchange(a, b) })
}

// Remove is part of batch.Tree.
func (t *jailTap) Remove(name string) error {
	return t.write("remove", name, func() error { return t.tree().Remove(name) })
}

// SyncDir is part of batch.Tree. Nothing here loses what was not synced, so the disk is spared.
func (t *jailTap) SyncDir(dir string) error { return t.write("sync", dir, func() error { return nil }) }

type jailHandle struct {
	batch.Handle
	tap  *jailTap
	name string
}

// Write is part of batch.Handle. When it fails, half is written.
func (h *jailHandle) Write(content []byte) (n int, err error) {
	err = h.tap.write("write", h.name, func() (err error) { n, err = h.Handle.Write(content); return err })
	if err != nil && n == 0 {
		n, _ = h.Handle.Write(content[:len(content)/2])
	}
	return n, err
}

// Chmod is part of batch.Handle.
func (h *jailHandle) Chmod(mode fs.FileMode) error {
	return h.tap.write("chmod", h.name, func() error { return h.Handle.Chmod(mode) })
}

// Sync is part of batch.Handle.
func (h *jailHandle) Sync() error { return h.tap.write("sync", h.name, func() error { return nil }) }

// look returns the files of the jail with their modes, by path.
func (w *world) look() map[string]string {
	seen := map[string]string{}
	err := filepath.WalkDir(w.jail.dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := os.Stat(path)
		content, unread := os.ReadFile(path)
		if err = errors.Join(err, unread); err == nil {
			seen[strings.TrimPrefix(path, w.jail.dir)] = fmt.Sprintf("%#o %s", info.Mode().Perm(), content)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		w.fail("the jail can be looked at", "%v", err)
	}
	return seen
}
