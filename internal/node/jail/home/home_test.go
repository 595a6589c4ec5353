// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package home_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/node/jail"
	"github.com/coxswain-hpc/coxswain/internal/node/jail/home"
)

var alice = home.Account{Home: "/home/alice", UID: 2001, GID: 2002}

// world returns a jail with a skeleton. Tests that change owners need root.
func world(t *testing.T) (dir string, root *jail.Root) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root gives files away")
	}
	dir = t.TempDir()
	for _, d := range []string{"home", "etc/skel/.config/deep"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "etc/skel/.bashrc"), "skeleton")
	write(t, filepath.Join(dir, "etc/skel/.config/deep/file"), "deep")
	if err := os.Symlink(".bashrc", filepath.Join(dir, "etc/skel/.profile")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "etc/skel/fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	root, err := jail.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return dir, root
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o640); err != nil {
		t.Fatal(err)
	}
}

// tree lists what is below a directory: mode, owner and content.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		stat, _ := info.Sys().(*syscall.Stat_t)
		content := ""
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(data)
		case info.Mode()&fs.ModeSymlink != 0:
			if content, err = os.Readlink(path); err != nil {
				return err
			}
		}
		name, err := filepath.Rel(dir, path)
		out[name] = strings.TrimSpace(fmt.Sprintf("%v %d:%d %s", info.Mode(), stat.Uid, stat.Gid, content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// whole is a home that is finished.
var whole = map[string]string{
	".":                 "drwx------ 2001:2002",
	".bashrc":           "-rw-r----- 2001:2002 skeleton",
	".profile":          "Lrwxrwxrwx 2001:2002 .bashrc",
	".config":           "drwxr-xr-x 2001:2002",
	".config/deep":      "drwxr-xr-x 2001:2002",
	".config/deep/file": "-rw-r----- 2001:2002 deep",
}

func TestAHomeIsMadeOnce(t *testing.T) {
	dir, root := world(t)
	made, err := home.Make(root, alice)
	if err != nil || !made {
		t.Fatalf("made: %v, %v", made, err)
	}
	at := filepath.Join(dir, alice.Home)
	if diff := cmp.Diff(whole, tree(t, at)); diff != "" {
		t.Errorf("the home differs (-want +got):\n%s", diff)
	}
	write(t, filepath.Join(at, ".bashrc"), "of alice")
	if made, err := home.Make(root, alice); err != nil || made {
		t.Errorf("made again: %v, %v", made, err)
	}
	if got := tree(t, at)[".bashrc"]; !strings.HasSuffix(got, "of alice") {
		t.Errorf("the user's file is %q", got)
	}
}

// TestAHomeIsFinished begins where a maker was killed: after each of the things that it does.
func TestAHomeIsFinished(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, at string){
		"the directory alone":    func(*testing.T, string) {},
		"a file without content": func(t *testing.T, at string) { write(t, filepath.Join(at, ".bashrc"), "") },
		"a link of root's":       func(t *testing.T, at string) { must(t, os.Symlink(".bashrc", filepath.Join(at, ".profile"))) },
		"a directory of root's":  func(t *testing.T, at string) { must(t, os.Mkdir(filepath.Join(at, ".config"), 0o755)) },
		"a file of the user's own": func(t *testing.T, at string) {
			write(t, filepath.Join(at, ".bashrc"), "skeleton")
			must(t, os.Chown(filepath.Join(at, ".bashrc"), alice.UID, alice.GID))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, root := world(t)
			at := filepath.Join(dir, alice.Home)
			must(t, os.Mkdir(at, 0o700))
			must(t, os.Chmod(at, fs.ModeSticky|0o700))
			begin(t, at)
			if made, err := home.Make(root, alice); err != nil || !made {
				t.Fatalf("made: %v, %v", made, err)
			}
			if diff := cmp.Diff(whole, tree(t, at)); diff != "" {
				t.Errorf("the home differs (-want +got):\n%s", diff)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestHomesOfOthersAreLeftAlone(t *testing.T) {
	dir, root := world(t)
	at := filepath.Join(dir, alice.Home)
	must(t, os.Mkdir(at, 0o755)) // root's, and open: what an administrator has made for sftp, say
	if made, err := home.Make(root, alice); err != nil || made {
		t.Errorf("made: %v, %v", made, err)
	}
	if diff := cmp.Diff(map[string]string{".": "drwxr-xr-x 0:0"}, tree(t, at)); diff != "" {
		t.Errorf("it differs (-want +got):\n%s", diff)
	}
}

// TestAHomeThatIsClosedToItsUserStaysClosed is about an administrator who shuts a user out.
func TestAHomeThatIsClosedToItsUserStaysClosed(t *testing.T) {
	dir, root := world(t)
	if made, err := home.Make(root, alice); err != nil || !made {
		t.Fatalf("made: %v, %v", made, err)
	}
	at := filepath.Join(dir, alice.Home)
	must(t, os.Chown(at, 0, 0))
	closed := tree(t, at)
	if closed["."] != "drwx------ 0:0" {
		t.Fatalf("it is %q", closed["."])
	}
	if made, err := home.Make(root, alice); err != nil || made {
		t.Errorf("made: %v, %v", made, err)
	}
	if diff := cmp.Diff(closed, tree(t, at)); diff != "" {
		t.Errorf("it differs (-want +got):\n%s", diff)
	}
}

func TestDirectoriesOnTheWayAreMade(t *testing.T) {
	dir, root := world(t)
	deep := home.Account{Home: "/srv/people/bob", UID: 5, GID: 6}
	if made, err := home.Make(root, deep); err != nil || !made {
		t.Fatalf("made: %v, %v", made, err)
	}
	got := tree(t, filepath.Join(dir, "srv"))
	for name, want := range map[string]string{".": "drwxr-xr-x 0:0", "people": "drwxr-xr-x 0:0", "people/bob": "drwx------ 5:6"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

// TestAHostileJailGetsNothingOutside has links at every place that a home is made of.
func TestAHostileJailGetsNothingOutside(t *testing.T) {
	for name, test := range map[string]struct {
		begin func(t *testing.T, dir, outside string)
		made  bool
		err   string
	}{
		"the home is a link to the host": {begin: func(t *testing.T, dir, outside string) {
			must(t, os.Symlink(outside, filepath.Join(dir, "home/alice")))
		}, err: "/home/alice"},
		"/home is a link to the host": {begin: func(t *testing.T, dir, outside string) {
			must(t, os.Remove(filepath.Join(dir, "home")))
			must(t, os.Symlink(outside, filepath.Join(dir, "home")))
		}, err: "/home"},
		"/home is a circle": {begin: func(t *testing.T, dir, _ string) {
			must(t, os.Remove(filepath.Join(dir, "home")))
			must(t, os.Symlink("home", filepath.Join(dir, "home")))
		}, err: "/home"},
		"the skeleton is a link to the host": {begin: func(t *testing.T, dir, outside string) {
			must(t, os.RemoveAll(filepath.Join(dir, "etc/skel")))
			must(t, os.Symlink(outside, filepath.Join(dir, "etc/skel")))
		}, made: true},
		"a file of the skeleton is a device": {begin: func(t *testing.T, dir, _ string) {
			must(t, os.Remove(filepath.Join(dir, "etc/skel/.profile")))
			must(t, os.Symlink("/dev/zero", filepath.Join(dir, "etc/skel/.profile")))
		}, made: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir, root := world(t)
			outside := t.TempDir()
			write(t, filepath.Join(outside, "secret"), "of the host")
			before := tree(t, outside)
			test.begin(t, dir, outside)
			made, err := home.Make(root, alice)
			if made != test.made || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("made: %v, %v; want %v and an error with %q", made, err, test.made, test.err)
			}
			if diff := cmp.Diff(before, tree(t, outside)); diff != "" {
				t.Errorf("what is outside of the jail differs:\n%s", diff)
			}
			if made {
				for file, is := range tree(t, filepath.Join(dir, alice.Home)) {
					if strings.Contains(is, "of the host") {
						t.Errorf("%s is %q", file, is)
					}
				}
			}
		})
	}
}

func TestTwoLoginsAtOnceMakeOneHome(t *testing.T) {
	for range 20 {
		dir, root := world(t)
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if _, err := home.Make(root, alice); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		if diff := cmp.Diff(whole, tree(t, filepath.Join(dir, alice.Home))); diff != "" {
			t.Fatalf("the home differs (-want +got):\n%s", diff)
		}
	}
}

func TestWhatIsNoUsersHome(t *testing.T) {
	_, root := world(t)
	for name, a := range map[string]home.Account{
		"root":            {Home: "/root", GID: 1},
		"the root":        {Home: "//", UID: 1, GID: 1},
		"a relative path": {Home: "home/alice", UID: 1, GID: 1},
		"no path":         {UID: 1, GID: 1},
	} {
		if made, err := home.Make(root, a); err == nil || made {
			t.Errorf("%s: made: %v, %v", name, made, err)
		}
	}
}
