// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package jail_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/jail"
)

func TestChangesStayInTheJail(t *testing.T) {
	for name, test := range map[string]struct {
		do  func(*jail.Root) error
		err error
		at  string
	}{
		"a file below a link to the host":      {do: create("/out/new"), err: fs.ErrNotExist, at: "/out/new"},
		"a file at a link to the host":         {do: create("/etc/host"), err: fs.ErrExist, at: "/etc/host"},
		"a file below a circle":                {do: create("/etc/a/new"), err: unix.ELOOP, at: "/etc/a/new"},
		"a directory below a link to the host": {do: func(r *jail.Root) error { return r.Mkdir("/out/new", 0o755) }, err: fs.ErrNotExist, at: "/out/new"},
		"what a link to the host names":        {do: func(r *jail.Root) error { return r.Remove("/out/secret") }, err: fs.ErrNotExist, at: "/out/secret"},
		"the root":                             {do: func(r *jail.Root) error { return r.Remove("/") }, err: unix.EINVAL, at: "/"},
		"dots":                                 {do: func(r *jail.Root) error { return r.Remove("/etc/..") }, err: unix.EINVAL, at: "/etc/.."},
		"a move out":                           {do: func(r *jail.Root) error { return r.Rename("/etc/passwd", "/out/passwd") }, err: fs.ErrNotExist, at: "/out/passwd"},
		"a move over a file that must not be":  {do: func(r *jail.Root) error { return r.RenameNew("/usr/lib/os-release", "/etc/passwd") }, err: fs.ErrExist, at: "/etc/passwd"},
		"an exchange with nothing":             {do: func(r *jail.Root) error { return r.Exchange("/etc/passwd", "/etc/no") }, err: fs.ErrNotExist, at: "/etc/no"},
		"a strict path over a link":            {do: func(r *jail.Root) error { return create("/lib/new")(r.WithoutLinks()) }, err: unix.ELOOP, at: "/lib/new"},
	} {
		t.Run(name, func(t *testing.T) {
			root := hostile(t)
			err := test.do(root)
			if !errors.Is(err, test.err) || !strings.Contains(err.Error(), test.at) {
				t.Errorf("%v, want %v that names %s", err, test.err, test.at)
			}
		})
	}
}

func create(path string) func(*jail.Root) error {
	return func(r *jail.Root) error {
		file, err := r.Create(path, 0o600)
		if err != nil {
			return err
		}
		return file.Close()
	}
}

func TestFilesAreMadeMovedAndExchanged(t *testing.T) {
	dir := t.TempDir()
	root, err := jail.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(root.Mkdir("../a", 0o755))
	must(root.Mkdir("/a/b", 0o755))
	must(os.Symlink("/a/b", filepath.Join(dir, "link")))
	for path, content := range map[string]string{"/link/x": "x", "a/b/y": "y"} {
		file, err := root.Create(path, 0o640)
		must(err)
		_, err = file.WriteString(content)
		must(errors.Join(err, file.Close()))
	}
	must(root.Exchange("/a/b/x", "/link/y"))
	must(root.Rename("/a/b/x", "/z"))
	must(root.RenameNew("/a/b/y", "/a/b/w"))
	must(root.AddName("/z", "/a/v"))
	must(root.Remove("/z"))
	if info, err := root.Lstat("/link"); err != nil || info.Mode().Type() != fs.ModeSymlink {
		t.Errorf("lstat of a link: %v, %v", info, err)
	}
	if info, err := root.Lstat("/link/w"); err != nil || info.Size() != 1 || info.Mode() != 0o640 {
		t.Errorf("stat: %v, %v", info, err)
	}
	for path, want := range map[string]string{"a/b/w": "x", "a/v": "y"} {
		if got, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", path, got, err, want)
		}
	}
	if entries, _ := os.ReadDir(filepath.Join(dir, "a", "b")); len(entries) != 1 {
		t.Errorf("left: %v", entries)
	}
}

func TestATreeIsRemovedWithoutFollowingItsLinks(t *testing.T) {
	root := hostile(t)
	for _, path := range []string{"/out/secret", "/etc", "/lib", "/no", "/usr"} {
		if err := root.RemoveAll(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := root.Lstat("/etc"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("/etc is still there: %v", err)
	}
	if err := root.RemoveAll("/"); !errors.Is(err, unix.EINVAL) {
		t.Errorf("removing the root: %v", err)
	}
	link, err := root.Link("/out")
	if err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(filepath.Join(link, "secret")); err != nil || string(content) != "the host's" {
		t.Errorf("the file outside is %q, %v", content, err)
	}
}

func TestOnlyAFileOfOursIsAppendedTo(t *testing.T) {
	dir := t.TempDir()
	root, err := jail.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	at := func(name string) string { return filepath.Join(dir, name) }
	err = errors.Join(os.WriteFile(at("file"), []byte("a"), 0o600), os.WriteFile(at("victim"), nil, 0o600), os.Link(at("victim"), at("second")),
		os.Symlink("victim", at("link")), unix.Mkfifo(at("fifo"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"second": unix.EPERM, "link": unix.ELOOP, "fifo": unix.ENXIO, "none": fs.ErrNotExist} {
		if _, err := root.Append(name); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	file, err := root.Append("file")
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString("b")
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(at("file")); string(got) != "ab" {
		t.Errorf("the file has %q", got)
	}
}

// FuzzCreate looks for a path that makes something outside.
func FuzzCreate(f *testing.F) {
	outside := f.TempDir()
	inside := filepath.Join(outside, "jail")
	if err := errors.Join(os.Mkdir(inside, 0o755), os.Symlink(outside, filepath.Join(inside, "out")), os.Symlink("..", filepath.Join(inside, "up"))); err != nil {
		f.Fatal(err)
	}
	root, err := jail.Open(inside)
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range []string{"out/x", "up/x", "../x", "up/../../x", "a/b", "/"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if root.Mkdir(path, 0o755) == nil {
			_ = create(path + "/x")(root)
		}
		_ = create(path)(root)
		_ = root.Rename("/x", path)
		_ = root.Remove(path)
		if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
			t.Errorf("%q changes what is outside of the jail: %v, %v", path, entries, err)
		}
	})
}
