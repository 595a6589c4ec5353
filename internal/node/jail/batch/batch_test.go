// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package batch_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/jail"
	"github.com/coxswain-hpc/coxswain/internal/node/jail/batch"
)

// plant fills a directory and opens it as a jail. The values are contents with modes.
func plant(t testing.TB, dir string, files map[string]string) batch.Tree {
	t.Helper()
	for name, value := range files {
		content, mode := value[:strings.LastIndexByte(value, ' ')], value[strings.LastIndexByte(value, ' ')+1:]
		bits, err := strconv.ParseUint(mode, 8, 32)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600), os.Chmod(path, batch.ModeOf(uint32(bits)))); err != nil {
			t.Fatal(err)
		}
	}
	root, err := jail.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return batch.Jail(root)
}

func TestPathsThatAreRefused(t *testing.T) {
	for name, test := range map[string]struct{ path, want string }{
		"relative":                         {"etc/a", `"etc/a" of a file is not absolute`},
		"dots":                             {"/etc/../a", "write it as /a"},
		"a dot":                            {"/etc/./a", "write it as /etc/a"},
		"the root":                         {"/", "ends in /"},
		"a line break":                     {"/etc/a\nb", "characters"},
		"a link":                           {"/link", "/link is a symbolic link"},
		"a link to the host":               {"/host/passwd", "/host/passwd of the jail: a part of it is a symbolic link"},
		"a link in the middle":             {"/up/a", "/up/a of the jail: a part of it is a symbolic link"},
		"a directory":                      {"/etc", "/etc is no file"},
		"a file as a directory":            {"/etc/file/a", "/etc/file/a"},
		"like a file on its way":           {"/etc/a-sconfigcontroller-1-1", "name it otherwise"},
		"below a directory that is a link": {"/loop/a/b", "/loop/a/b"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			tree := plant(t, dir, map[string]string{"/etc/file": "x 0644"})
			for link, to := range map[string]string{"link": "/etc/file", "host": "/proc/1/root/etc", "up": "../..", "loop": "loop"} {
				if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
					t.Fatal(err)
				}
			}
			w := batch.Writer{Tree: tree, Now: time.Now}
			_, _, err := w.Write([]batch.File{{Path: "/good", Mode: 0o644}, {Path: test.path, Mode: 0o644}})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if _, err := os.Lstat(filepath.Join(dir, "good")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("another file of the batch was written: %v", err)
			}
		})
	}
}

func TestTwoFilesOfOnePathAreRefused(t *testing.T) {
	w := batch.Writer{Tree: plant(t, t.TempDir(), nil), Now: time.Now}
	if _, _, err := w.Write([]batch.File{{Path: "/a"}, {Path: "/a"}}); err == nil || !strings.Contains(err.Error(), "/a is that of two files") {
		t.Error(err)
	}
}

func TestAFileThatIsRightIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	tree := &faulty{Tree: plant(t, dir, map[string]string{"/a": "x 04755", "/b": "x 0644"})}
	w := batch.Writer{Tree: tree, Now: time.Now}
	files := []batch.File{{Path: "/a", Content: []byte("x"), Mode: batch.ModeOf(0o755)}, {Path: "/b", Content: []byte("x"), Mode: 0o644}}
	was, _ := os.Stat(filepath.Join(dir, "b"))
	changed, _, err := w.Write(files)
	if err != nil || !slices.Equal(changed, []string{"/a"}) {
		t.Errorf("%v, %v", changed, err)
	}
	if is, err := os.Stat(filepath.Join(dir, "b")); err != nil || !os.SameFile(was, is) {
		t.Errorf("an equal file was written: %v", err)
	}
	calls := tree.calls
	if changed, _, err := w.Write(files); err != nil || len(changed) != 0 {
		t.Errorf("again: %v, %v", changed, err)
	}
	if n := tree.calls - calls; n != 5 { // a look and a read for each, and one directory
		t.Errorf("%d calls at rest", n)
	}
}

func TestOldFilesStayAsLongAsCachesLeadToThem(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	w := batch.Writer{Tree: plant(t, dir, map[string]string{"/a": "old 0644"}), Lag: time.Minute, Now: func() time.Time { return now }}
	files := []batch.File{{Path: "/a", Content: []byte("new"), Mode: 0o644}}
	_, until, err := w.Write(files)
	if err != nil || !until.Equal(time.Unix(0, now.Add(time.Minute).UnixNano())) || len(look(t, dir)) != 2 {
		t.Fatalf("until %v, %v: %v", until, err, look(t, dir))
	}
	now = now.Add(time.Minute)
	if until, err := w.Clean(files); err != nil || !until.IsZero() || len(look(t, dir)) != 1 {
		t.Errorf("until %v, %v: %v", until, err, look(t, dir))
	}
}

// TestADirectoryWithTheNameOfAnOldFileStopsNothing is about users, who can make any name in a directory that they may write to.
func TestADirectoryWithTheNameOfAnOldFileStopsNothing(t *testing.T) {
	dir := t.TempDir()
	w := batch.Writer{Tree: plant(t, dir, map[string]string{"/a-sconfigcontroller-1-0/precious": "mine 0644", "/b-sconfigcontroller-1-0": "old 0644"}), Now: time.Now}
	files := []batch.File{{Path: "/a", Content: []byte("new"), Mode: 0o644}}
	if changed, _, err := w.Write(files); err != nil || len(changed) != 1 {
		t.Fatalf("changed %v: %v", changed, err)
	}
	for range 2 {
		if changed, until, err := w.Write(files); err != nil || len(changed) != 0 || !until.IsZero() {
			t.Errorf("changed %v, until %v: %v", changed, until, err)
		}
	}
	if got := slices.Sorted(maps.Keys(look(t, dir))); !slices.Equal(got, []string{"/a", "/a-sconfigcontroller-1-0/precious"}) {
		t.Errorf("there are %q", got)
	}
}

func TestAFullDiskIsToldAndChangesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("full", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("mounting a small file system takes root: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	w := batch.Writer{Tree: plant(t, dir, map[string]string{"/a": "old 0644"}), Now: time.Now, Parallel: 4}
	_, _, err := w.Write([]batch.File{{Path: "/a", Content: []byte("new"), Mode: 0o644}, {Path: "/big", Content: make([]byte, 1<<20), Mode: 0o644}})
	if err == nil || !strings.Contains(err.Error(), "the file system of the jail is full") || !strings.Contains(err.Error(), "/big") {
		t.Error(err)
	}
	if seen := look(t, dir); len(seen) != 1 || seen["/a"] != "old 0644" {
		t.Error(seen)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if _, _, err = w.Write([]batch.File{{Path: "/a", Content: []byte("new"), Mode: 0o644}}); err == nil || !strings.Contains(err.Error(), "mounted read-only") {
		t.Error(err)
	}
}

// quota is a tree in which no file can be made.
type quota struct{ batch.Tree }

func (quota) Create(name string, _ fs.FileMode) (batch.Handle, error) {
	return nil, fmt.Errorf("opening %s of the jail: %w", name, unix.EIO)
}

func TestAnErrorIsToldInTheSameWordsEachTime(t *testing.T) {
	var told []string
	for hour := range 2 {
		tree := quota{plant(t, t.TempDir(), map[string]string{"/etc/a": "old 0644"})}
		w := batch.Writer{Tree: tree, Now: func() time.Time { return time.Unix(int64(1_800_000_000+3600*hour), 0) }}
		_, _, err := w.Write([]batch.File{{Path: "/etc/a", Content: []byte("new"), Mode: 0o644}})
		if !errors.Is(err, unix.EIO) {
			t.Fatal(err)
		}
		told = append(told, err.Error())
	}
	if want := "writing /etc/a: opening /etc/a of the jail: input/output error"; told[0] != want || told[1] != want {
		t.Errorf("%q, want %q", told, want)
	}
}

// many returns a group of 1,000 files.
func many(content string) []batch.File {
	files := make([]batch.File, 1000)
	for i := range files {
		files[i] = batch.File{Path: fmt.Sprintf("/etc/slurm/d%d/file%d", i%10, i), Content: []byte(content), Mode: 0o644}
	}
	return files
}

func TestAThousandFilesTakeElevenCallsEach(t *testing.T) {
	dir := t.TempDir()
	tree := &faulty{Tree: plant(t, dir, nil)}
	w := batch.Writer{Tree: tree, Now: time.Now, Parallel: 32}
	for _, content := range []string{"old", "new"} {
		calls := tree.calls
		changed, _, err := w.Write(many(content))
		if err != nil || len(changed) != 1000 {
			t.Fatalf("%d files, %v", len(changed), err)
		}
		if n := tree.calls - calls; n > 11_000 {
			t.Errorf("%s took %d calls", content, n)
		}
	}
	seen := look(t, dir)
	if len(seen) != 1000 || seen["/etc/slurm/d3/file33"] != "new 0644" {
		t.Errorf("%d files", len(seen))
	}
}

// BenchmarkThousandFiles writes a group of 1,000 files anew, in ten directories.
func BenchmarkThousandFiles(b *testing.B) {
	w := batch.Writer{Tree: plant(b, b.TempDir(), nil), Now: time.Now, Parallel: 32}
	for i := 0; b.Loop(); i++ {
		if _, _, err := w.Write(many(strconv.Itoa(i))); err != nil {
			b.Fatal(err)
		}
	}
}
