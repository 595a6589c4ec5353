// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package users_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"syscall"

	"github.com/coxswain-hpc/coxswain/internal/node/jail/users"
)

// tree is a directory that stands for a jail.
type tree string

func (t tree) Open(path string) (*os.File, error) {
	return os.OpenFile(filepath.Join(string(t), path), os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

func (t tree) write(tb testing.TB, name, content string) {
	tb.Helper()
	path := filepath.Join(string(t), "etc", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	// As useradd does: another inode.
	if err := os.WriteFile(path+"+", []byte(content), 0o600); err != nil {
		tb.Fatal(err)
	}
	if err := os.Rename(path+"+", path); err != nil {
		tb.Fatal(err)
	}
}

func read(tb testing.TB, dir, name string) string {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

const alice, bob = "alice:x:1000:1000::/home/alice:/bin/sh\n", "bob:x:1001:1001::/home/bob:/bin/sh\n"

func TestAUserOfTheJailIsThereWithinTheInterval(t *testing.T) {
	jail, dir := tree(t.TempDir()), t.TempDir()
	jail.write(t, "passwd", alice)
	jail.write(t, "group", "alice:x:1000:\n")
	jail.write(t, "shadow", "alice:$y$secret:20000:0:99999:7:::\n")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		also := t.TempDir()
		view := users.View{Jail: jail, Image: image(), Dir: dir, Also: also, WithShadow: true, Log: slog.New(slog.DiscardHandler)}
		done := make(chan struct{})
		go func() { view.Follow(ctx, 2*time.Second); close(done) }()
		synctest.Wait()
		if got, want := read(t, dir, "passwd"), image().Passwd+alice; got != want {
			t.Errorf("passwd is %q, want %q", got, want)
		}
		if got, want := read(t, dir, "shadow"), image().Shadow+"alice:*:20000:0:99999:7:::\n"; got != want {
			t.Errorf("shadow is %q, want %q", got, want)
		}
		jail.write(t, "passwd", alice+bob)
		time.Sleep(2 * time.Second) // by the clock of synctest
		synctest.Wait()
		for _, where := range []string{dir, also} {
			if got := read(t, where, "passwd"); !strings.HasSuffix(got, alice+bob) {
				t.Errorf("passwd is %q two seconds after bob was added", got)
			}
		}
		if _, err := os.Stat(filepath.Join(also, "shadow")); !os.IsNotExist(err) {
			t.Errorf("shadow of the jail is where everybody can read it: %v", err)
		}
		cancel()
		<-done
	})
}

func TestFilesThatAreTheSameAreNotWritten(t *testing.T) {
	jail, dir := tree(t.TempDir()), t.TempDir()
	jail.write(t, "passwd", alice)
	jail.write(t, "group", "")
	view := users.View{Jail: jail, Image: image(), Dir: dir, Log: slog.New(slog.DiscardHandler)}
	if err := view.Update(); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(filepath.Join(dir, "passwd"))
	if err != nil {
		t.Fatal(err)
	}
	jail.write(t, "group", "lab:x:2000:alice\n")
	if err := view.Update(); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(filepath.Join(dir, "passwd"))
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, after) {
		t.Error("passwd was written although only group has changed")
	}
	if got := read(t, dir, "group"); !strings.HasSuffix(got, "lab:x:2000:alice\n") {
		t.Errorf("group is %q", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "shadow")); !os.IsNotExist(err) {
		t.Errorf("shadow: %v, want none", err)
	}
}

func TestWhatCannotBeReadLeavesTheUsersAndIsSaidOnce(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, jail tree){
		"passwd is gone": func(t *testing.T, jail tree) {
			if err := os.Remove(filepath.Join(string(jail), "etc/passwd")); err != nil {
				t.Fatal(err)
			}
		},
		"passwd is a FIFO, which would make the reader wait": func(t *testing.T, jail tree) {
			path := filepath.Join(string(jail), "etc/passwd")
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mkfifo(path, 0o644); err != nil {
				t.Fatal(err)
			}
		},
		"group is a directory": func(t *testing.T, jail tree) {
			path := filepath.Join(string(jail), "etc/group")
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(path, 0o755); err != nil {
				t.Fatal(err)
			}
		},
		"passwd is larger than memory should be": func(t *testing.T, jail tree) {
			if err := os.Truncate(filepath.Join(string(jail), "etc/passwd"), 17<<20); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			jail, dir := tree(t.TempDir()), t.TempDir()
			jail.write(t, "passwd", alice)
			jail.write(t, "group", "")
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				ctx, cancel := context.WithCancel(t.Context())
				view := users.View{Jail: jail, Image: image(), Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))}
				done := make(chan struct{})
				go func() { view.Follow(ctx, time.Second); close(done) }()
				synctest.Wait()
				spoil(t, jail)
				time.Sleep(5 * time.Second) // by the clock of synctest
				synctest.Wait()
				cancel()
				<-done
				if got := read(t, dir, "passwd"); !strings.HasSuffix(got, alice) {
					t.Errorf("passwd is %q, want the users of before", got)
				}
				if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "/etc/") && !strings.Contains(log.String(), "etc/") {
					t.Errorf("said %d times: %s", n, log.String())
				}
			})
		})
	}
}
