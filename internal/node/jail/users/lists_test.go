// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package users_test

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/node/jail/users"
)

const carol = "carol:x:1002:1002::/home/carol:/bin/sh\n"

// volume is a directory in which the kubelet keeps lists.
type volume string

// mount puts the lists there as the kubelet does: all in a directory that one rename of a link replaces, and a link for each list.
func (v volume) mount(tb testing.TB, version string, lists map[string]string) {
	tb.Helper()
	do := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	dir := string(v)
	for name, passwd := range lists {
		do(os.MkdirAll(filepath.Join(dir, version, name), 0o755))
		do(os.WriteFile(filepath.Join(dir, version, name, "passwd"), []byte(passwd), 0o600))
		do(os.WriteFile(filepath.Join(dir, version, name, "group"), nil, 0o600))
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			do(os.Symlink("..data/"+name, filepath.Join(dir, name)))
		}
	}
	do(os.MkdirAll(filepath.Join(dir, version), 0o755))
	do(os.Symlink(version, filepath.Join(dir, "..data_tmp")))
	before, _ := os.Readlink(filepath.Join(dir, "..data"))
	do(os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	entries, err := os.ReadDir(dir)
	do(err)
	for _, e := range entries {
		if _, listed := lists[e.Name()]; !listed && !strings.HasPrefix(e.Name(), "..") {
			do(os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	if before != "" {
		do(os.RemoveAll(filepath.Join(dir, before)))
	}
}

func (v volume) open(tb testing.TB) fs.FS {
	tb.Helper()
	root, err := os.OpenRoot(string(v))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = root.Close() })
	return root.FS()
}

func TestListsAreFollowedAsTheJailIs(t *testing.T) {
	jail, lists, dir := tree(t.TempDir()), volume(t.TempDir()), t.TempDir()
	jail.write(t, "passwd", alice)
	jail.write(t, "group", "")
	lists.mount(t, "..1", map[string]string{"b-login": carol})
	root := lists.open(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		view := users.View{Jail: jail, Lists: root, Dir: dir, Log: slog.New(slog.DiscardHandler)}
		done := make(chan struct{})
		go func() { view.Follow(ctx, 2*time.Second); close(done) }()
		for _, step := range []struct {
			name string
			do   func()
			want string
		}{
			{"a list is behind the jail", func() {}, alice + carol},
			{"a user comes into a list", func() { lists.mount(t, "..2", map[string]string{"b-login": carol + bob}) }, alice + carol + bob},
			{"a list that sorts first comes", func() { lists.mount(t, "..3", map[string]string{"b-login": carol, "a-login": bob}) }, alice + bob + carol},
			{"the first of two lists wins", func() {
				lists.mount(t, "..4", map[string]string{"a-login": bob, "b-login": "bob:x:1005:1005::/:/bin/sh\n" + carol})
			}, alice + bob + carol},
			{"the jail wins", func() { jail.write(t, "passwd", "bob:x:1009:1009::/:/bin/sh\n") }, "bob:x:1009:1009::/:/bin/sh\n" + carol},
			{"lists go", func() { lists.mount(t, "..5", nil) }, "bob:x:1009:1009::/:/bin/sh\n"},
		} {
			step.do()
			time.Sleep(2 * time.Second) // by the clock of synctest
			synctest.Wait()
			if got := read(t, dir, "passwd"); got != step.want {
				t.Errorf("%s: passwd is %q, want %q", step.name, got, step.want)
			}
		}
		cancel()
		<-done
	})
}

func TestWhatCannotBeReadHidesNoOtherUsers(t *testing.T) {
	whole := fstest.MapFS{
		"a/passwd": {Data: []byte(bob)}, "a/group": {},
		"b/passwd": {Data: []byte(carol)}, "b/group": {},
	}
	without := func(names ...string) fstest.MapFS {
		out := maps.Clone(whole)
		maps.DeleteFunc(out, func(name string, _ *fstest.MapFile) bool { return slices.Contains(names, name) })
		return out
	}
	jailed := func(t *testing.T) tree {
		jail := tree(t.TempDir())
		jail.write(t, "passwd", alice)
		jail.write(t, "group", "")
		return jail
	}
	gone := func(t *testing.T) tree { return tree(t.TempDir()) }
	for name, test := range map[string]struct {
		jail func(*testing.T) tree
		// then and thenJail are what the second look finds.
		then       fs.FS
		thenJail   func(*testing.T) tree
		first, was string
		failed     string
	}{
		"a jail that is empty yet":             {jail: gone, then: whole, thenJail: jailed, first: bob + carol, was: alice + bob + carol},
		"a jail whose files go":                {jail: jailed, then: without("a/passwd", "a/group"), thenJail: gone, first: alice + bob + carol, was: alice + carol, failed: "etc/passwd"},
		"a list without group stays as it was": {jail: jailed, then: without("a/group"), thenJail: jailed, first: alice + bob + carol, was: alice + bob + carol, failed: "a/group"},
		"the directory of the lists goes":      {jail: jailed, then: nowhere{}, thenJail: jailed, first: alice + bob + carol, was: alice + bob + carol, failed: "looking for lists"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			view := users.View{Jail: test.jail(t), Lists: whole, Dir: dir, Log: slog.New(slog.DiscardHandler)}
			_ = view.Update()
			if got := read(t, dir, "passwd"); got != test.first {
				t.Errorf("passwd is %q at first, want %q", got, test.first)
			}
			view.Jail, view.Lists = test.thenJail(t), test.then
			err := view.Update()
			if got := read(t, dir, "passwd"); got != test.was {
				t.Errorf("passwd is %q then, want %q", got, test.was)
			}
			if (err == nil) != (test.failed == "") || err != nil && !strings.Contains(err.Error(), test.failed) {
				t.Errorf("%v, want %q", err, test.failed)
			}
		})
	}
}

// nowhere is a directory that cannot be read.
type nowhere struct{}

func (nowhere) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}

func TestAnEmptyListIsWrittenOnceAndNothingIsSaid(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	view := users.View{Lists: fstest.MapFS{}, Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))}
	var before fs.FileInfo
	for range 2 {
		if err := view.Update(); err != nil {
			t.Fatal(err)
		}
		after, err := os.Stat(filepath.Join(dir, "passwd"))
		if err != nil {
			t.Fatal(err)
		}
		if before != nil && !os.SameFile(before, after) {
			t.Error("passwd was written again although nothing has changed")
		}
		before = after
	}
	if log.Len() > 0 {
		t.Error(log.String())
	}
}
