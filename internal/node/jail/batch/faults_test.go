// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package batch_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/jail/batch"
)

// faulty is a tree on which something goes wrong at one call.
type faulty struct {
	batch.Tree
	// at is the number of the call, counted from one. A call before it works.
	at int
	// done is true if this call has its effect although it fails, dead if all calls after it fail.
	done, dead bool
	// later is how many calls after a call that failed a crash comes; zero: none does.
	later int
	// plain is a file system that cannot exchange names.
	plain bool
	// linkless is one without hard links.
	linkless bool

	mu    sync.Mutex
	calls int
	// unsynced are files whose content a power cut may take, and changed directories in which it may undo names.
	unsynced, changed map[string]bool
	// early are files that took the place of others before the disk had them.
	early []string
}

func (f *faulty) call(do func() error) error {
	f.mu.Lock()
	f.calls++
	hit, after := f.calls == f.at, f.at > 0 && f.calls > f.at
	crashed := f.later > 0 && f.calls >= f.at+f.later
	f.mu.Unlock()
	switch {
	case after && f.dead, crashed, hit && !f.done:
		return unix.EIO
	case hit:
		return errors.Join(do(), unix.EIO)
	}
	return do()
}

func (f *faulty) Lstat(name string) (info fs.FileInfo, err error) {
	err = f.call(func() (err error) { info, err = f.Tree.Lstat(name); return err })
	return info, err
}

func (f *faulty) Read(name string) (content []byte, err error) {
	err = f.call(func() (err error) { content, err = f.Tree.Read(name); return err })
	return content, err
}

func (f *faulty) Names(dir string) (names []string, err error) {
	err = f.call(func() (err error) { names, err = f.Tree.Names(dir); return err })
	return names, err
}

func (f *faulty) Create(name string, mode fs.FileMode) (handle batch.Handle, err error) {
	err = f.call(func() (err error) { handle, err = f.Tree.Create(name, mode); return err })
	if err != nil && handle != nil {
		err = errors.Join(err, handle.Close())
	}
	f.keep(name, false)
	return &faultyHandle{handle, f, name}, err
}

// spared does not wait for the disk in the test that tries the most.
func (f *faulty) spared(sync func() error) func() error {
	if f.later > 0 {
		return func() error { return nil }
	}
	return sync
}

// keep records whether the disk has the content of a file.
func (f *faulty) keep(name string, synced bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unsynced == nil {
		f.unsynced, f.changed = map[string]bool{}, map[string]bool{}
	}
	f.unsynced[name] = !synced
}

// move records that a file has got the name of another one, or the place where none was.
func (f *faulty) move(from, to string, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && f.unsynced[from] {
		f.early = append(f.early, to)
	}
	if err == nil && f.changed != nil {
		f.changed[filepath.Dir(to)] = true
	}
	return err
}

func (f *faulty) Mkdir(dir string, mode fs.FileMode) error {
	return f.move("", dir, f.call(func() error { return f.Tree.Mkdir(dir, mode) }))
}
func (f *faulty) AddName(a, b string) error {
	if f.linkless {
		return unix.EPERM
	}
	return f.call(func() error { return f.Tree.AddName(a, b) })
}
func (f *faulty) Rename(a, b string) error {
	return f.move(a, b, f.call(func() error { return f.Tree.Rename(a, b) }))
}
func (f *faulty) Remove(name string) error {
	return f.call(func() error { return f.Tree.Remove(name) })
}
func (f *faulty) SyncDir(dir string) error {
	err := f.call(f.spared(func() error { return f.Tree.SyncDir(dir) }))
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		delete(f.changed, dir)
	}
	return err
}

func (f *faulty) RenameNew(a, b string) error {
	if f.plain {
		return errors.ErrUnsupported
	}
	return f.move(a, b, f.call(func() error { return f.Tree.RenameNew(a, b) }))
}

func (f *faulty) Exchange(a, b string) error {
	if f.plain {
		return errors.ErrUnsupported
	}
	return f.move(a, b, f.call(func() error { return f.Tree.Exchange(a, b) }))
}

type faultyHandle struct {
	batch.Handle
	f    *faulty
	name string
}

// Write fails with half of the content written.
func (h *faultyHandle) Write(content []byte) (n int, err error) {
	err = h.f.call(func() (err error) { n, err = h.Handle.Write(content); return err })
	if err != nil && n == 0 {
		n, _ = h.Handle.Write(content[:len(content)/2])
	}
	h.f.keep(h.name, false)
	return n, err
}
func (h *faultyHandle) Chmod(mode fs.FileMode) error {
	h.f.keep(h.name, false)
	return h.f.call(func() error { return h.Handle.Chmod(mode) })
}

func (h *faultyHandle) Sync() error {
	err := h.f.call(h.f.spared(h.Handle.Sync))
	h.f.keep(h.name, err == nil)
	return err
}
func (h *faultyHandle) Close() error {
	return errors.Join(h.f.call(func() error { return nil }), h.Handle.Close())
}

// before returns what is in the tree, and after what shall be there; both map paths to contents with modes.
func before() map[string]string {
	return map[string]string{"/etc/slurm/a": "old a 0644", "/etc/slurm/same": "same 0644", "/etc/slurm/mode": "mode 0600", "/opt/b": "old b 0644"}
}

func after() []batch.File {
	return []batch.File{
		{Path: "/etc/slurm/a", Content: []byte("new a"), Mode: 0o644}, {Path: "/etc/slurm/same", Content: []byte("same"), Mode: 0o644},
		{Path: "/etc/slurm/mode", Content: []byte("mode"), Mode: 0o755}, {Path: "/opt/b", Content: []byte("new b"), Mode: 0o644},
		{Path: "/etc/slurm/new", Content: []byte("new"), Mode: 0o644}, {Path: "/var/lib/deep/new", Content: []byte("deep"), Mode: 0o600},
	}
}

func show(content []byte, mode fs.FileMode) string {
	return fmt.Sprintf("%s %#o", content, mode.Perm())
}

// look returns what is in a directory, with paths as in the jail.
func look(t testing.TB, dir string) map[string]string {
	t.Helper()
	seen := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		seen[strings.TrimPrefix(path, dir)] = show(content, info.Mode())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// TestACrashOrAnErrorAtAnyCall has every call of a batch go wrong, once or from then on, with and without having had its effect.
func TestACrashOrAnErrorAtAnyCall(t *testing.T) {
	for system, lacks := range map[string]struct{ plain, linkless bool }{"all": {}, "no exchange": {plain: true}, "no links": {plain: true, linkless: true}} {
		for name, mode := range map[string]struct{ done, dead bool }{
			"an error": {}, "a crash before": {dead: true}, "a crash after": {done: true, dead: true},
		} {
			t.Run(name+", "+system, func(t *testing.T) {
				t.Parallel()
				at := 1
				for ; ; at++ {
					if !crash(t, &faulty{at: at, done: mode.done, dead: mode.dead, plain: lacks.plain, linkless: lacks.linkless}, mode.dead) {
						break
					}
				}
				if at < 40 {
					t.Errorf("only %d calls were tried", at)
				}
			})
		}
	}
}

// TestACrashWhileABatchIsUndone has every call of a batch fail, and then a crash at every call that undoes it.
func TestACrashWhileABatchIsUndone(t *testing.T) {
	for system, plain := range map[string]bool{"all": false, "no exchange": true} {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			tried, met := 0, true
			for at := 1; met; at++ {
				crashed := true
				for later := 1; crashed; later++ {
					f := &faulty{at: at, later: later, plain: plain}
					met = crash(t, f, true)
					crashed = f.calls >= at+later
					tried++
				}
			}
			if tried < 400 {
				t.Errorf("only %d crashes were tried", tried)
			}
		})
	}
}

// TestWhatIsWrittenSurvivesAPowerCut checks that the disk has a file before it takes the place of another one, and its name before
// the batch reports that it is written.
func TestWhatIsWrittenSurvivesAPowerCut(t *testing.T) {
	for system, lacks := range map[string]struct{ plain, linkless bool }{"all": {}, "no exchange": {plain: true}, "no links": {plain: true, linkless: true}} {
		t.Run(system, func(t *testing.T) {
			f := &faulty{Tree: plant(t, t.TempDir(), before()), plain: lacks.plain, linkless: lacks.linkless}
			w := &batch.Writer{Tree: f, Now: time.Now, Parallel: 4}
			changed, _, err := w.Write(after())
			if err != nil || len(changed) != 5 {
				t.Fatalf("%d files, %v", len(changed), err)
			}
			if len(f.early) > 0 || len(f.changed) > 0 {
				t.Errorf("a power cut takes the content of %v, and the names in %v", f.early, f.changed)
			}
		})
	}
}

// never is more calls than there are.
const never = 1 << 30

// crash runs a batch on a faulty tree, and another one afterwards, and reports whether the fault was met.
func crash(t *testing.T, f *faulty, dead bool) bool {
	t.Helper()
	dir := t.TempDir()
	f.Tree = plant(t, dir, before())
	noon := time.Unix(1_800_000_000, 0)
	w := &batch.Writer{Tree: f, Now: func() time.Time { return noon }}
	_, _, err := w.Write(after())
	want := map[string]string{}
	for _, file := range after() {
		want[file.Path] = show(file.Content, file.Mode)
	}
	seen, old := look(t, dir), before()
	for path := range want {
		if seen[path] != want[path] && (seen[path] != old[path] || !dead && err == nil) {
			t.Fatalf("call %d of %d: %s is %q, neither %q nor %q (%v)", f.at, f.calls, path, seen[path], old[path], want[path], err)
		}
		if !dead && err != nil && seen[path] != old[path] {
			t.Fatalf("call %d of %d: the batch failed (%v), and %s is %q", f.at, f.calls, err, path, seen[path])
		}
	}
	again := &batch.Writer{Tree: &faulty{Tree: f.Tree, later: f.later * never}, Lag: time.Minute, Now: func() time.Time { return noon.Add(time.Hour) }}
	if _, _, err := again.Write(after()); err != nil {
		t.Fatalf("call %d: the next batch: %v", f.at, err)
	}
	again.Now = func() time.Time { return noon.Add(2 * time.Hour) }
	if _, err := again.Clean(after()); err != nil {
		t.Fatal(err)
	}
	for path, content := range look(t, dir) {
		if want[path] != content {
			t.Fatalf("call %d: after the next batch %s is %q, want %q", f.at, path, content, want[path])
		}
		delete(want, path)
	}
	if len(want) > 0 {
		t.Fatalf("call %d: after the next batch there is no %v", f.at, want)
	}
	return f.calls >= f.at
}
