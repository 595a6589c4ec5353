// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package populate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestAnEmptyJailBecomesTheImage(t *testing.T) {
	source := image(t)
	for _, workers := range []int{1, 7} {
		jail := t.TempDir()
		must(t, os.Mkdir(filepath.Join(jail, "lost+found"), 0o700))
		o, progress := options(source, jail), &Progress{}
		o.Workers = workers
		must(t, Run(o, progress))
		must(t, os.Remove(filepath.Join(jail, "lost+found")))
		if diff := cmp.Diff(expected(t, source), normal(tree(t, jail))); diff != "" {
			t.Errorf("with %d workers (-want +got): %s", workers, diff)
		}
		content, err := os.ReadFile(filepath.Join(jail, Sentinel))
		if err != nil || string(content) != "1970-01-01T00:00:00Z\n" {
			t.Errorf("the sentinel says %q (%v)", content, err)
		}
		if progress.Files() < 20 || progress.Bytes() < 100_000 || progress.Bytes() > 1<<20 {
			t.Errorf("%d files and %d bytes were counted", progress.Files(), progress.Bytes())
		}
	}
}

var errKilled = errors.New("killed")

// killedAfter runs until so many changes of the jail are made; nothing happens after that, as after a SIGKILL.
func killedAfter(o Options, changes int) error {
	return run(o, &Progress{}, func() error {
		if changes == 0 {
			return errKilled
		}
		changes--
		return nil
	})
}

func TestAFirstCopyThatIsKilledAnywhereIsGoneOnWith(t *testing.T) {
	source := image(t)
	want := expected(t, source)
	memory := mounted(t, "mode=0755")
	for changes := 0; ; changes++ {
		jail := filepath.Join(memory, strconv.Itoa(changes))
		must(t, os.Mkdir(jail, 0o755))
		o := options(source, jail)
		err := killedAfter(o, changes)
		if err == nil {
			if changes < 100 {
				t.Fatalf("only %d changes were tried", changes)
			}
			t.Logf("killed after each of %d changes", changes)
			return
		}
		if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		if _, err := os.Lstat(filepath.Join(jail, Sentinel)); err == nil {
			// Everything must be there once the sentinel is.
			whole := normal(tree(t, jail))
			delete(whole, Marker)
			delete(whole, lockName)
			if diff := cmp.Diff(want, whole); diff != "" {
				t.Fatalf("killed after %d changes, and the jail seems whole (-want +got): %s", changes, diff)
			}
		}
		// Twice: the second is killed, too.
		if err := killedAfter(o, changes/2); err != nil && !errors.Is(err, errKilled) {
			t.Fatalf("the run after one that was killed after %d changes: %v", changes, err)
		}
		must(t, Run(o, &Progress{}))
		if diff := cmp.Diff(want, normal(tree(t, jail))); diff != "" {
			t.Fatalf("killed after %d changes and gone on with (-want +got): %s", changes, diff)
		}
	}
}

// lived makes a jail whose users have changed everything that is theirs, and an image of the next release.
func lived(t *testing.T) (source, jail string) {
	t.Helper()
	source, jail = image(t), mounted(t, "mode=0755")
	must(t, Run(options(source, jail), &Progress{}))
	for name, content := range map[string]string{
		"etc/passwd": "alice\n", "etc/ssh/ssh_host_key": "of the cluster\n", "home/guest/.profile": "mine\n", "root/.bashrc": "mine\n",
		"home/guest/thesis": "42\n", "usr/bin/mine": "tool\n", "etc/os-release": "changed\n",
	} {
		must(t, os.WriteFile(filepath.Join(jail, name), []byte(content), 0o600))
	}
	must(t, os.Remove(filepath.Join(jail, "etc/sudoers.d/admin")))
	must(t, os.RemoveAll(filepath.Join(jail, "usr/lib")))
	must(t, os.WriteFile(filepath.Join(source, "etc/os-release"), []byte("release 2\n"), 0o644))
	return source, jail
}

func TestOverwriteReplacesTheImagesFilesAndKeepsThoseOfUsers(t *testing.T) {
	source, jail := lived(t)
	o := options(source, jail)
	must(t, Run(o, &Progress{}))
	if got := read(t, jail, "etc/os-release"); got != "changed\n" {
		t.Errorf("a jail that is whole was changed without overwrite: %q", got)
	}
	o.Overwrite = true
	overwritten := func(what string) {
		t.Helper()
		for name, want := range map[string]string{
			"etc/passwd": "alice\n", "etc/ssh/ssh_host_key": "of the cluster\n", "home/guest/.profile": "mine\n", "root/.bashrc": "mine\n",
			"home/guest/thesis": "42\n", "usr/bin/mine": "tool\n", "etc/os-release": "release 2\n", "usr/lib/sh": "#!",
		} {
			if got := read(t, jail, name); got != want {
				t.Fatalf("%s: /%s is %q, want %q", what, name, got, want)
			}
		}
		if _, err := os.Lstat(filepath.Join(jail, "etc/sudoers.d/admin")); err == nil {
			t.Fatalf("%s: what an administrator took away from sudoers.d is there again", what)
		}
	}
	must(t, Run(o, &Progress{}))
	overwritten("overwrite")
	for changes := 0; ; changes++ {
		must(t, os.WriteFile(filepath.Join(jail, "etc/os-release"), []byte("changed\n"), 0o600))
		must(t, os.Remove(filepath.Join(jail, "usr/lib/sh")))
		err := killedAfter(o, changes)
		if err == nil {
			t.Logf("killed after each of %d changes", changes)
			return
		}
		if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		must(t, Run(o, &Progress{}))
		overwritten("killed and gone on with")
	}
}

func read(t *testing.T, root, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	must(t, err)
	return string(content)
}

func TestAnInterruptedOverwriteGoesOnWithoutBeingAskedFor(t *testing.T) {
	source, jail := lived(t)
	o := options(source, jail)
	o.Overwrite = true
	if err := killedAfter(o, 12); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	o.Overwrite = false
	must(t, Run(o, &Progress{}))
	if read(t, jail, "etc/os-release") != "release 2\n" || read(t, jail, "etc/passwd") != "alice\n" {
		t.Error("the overwrite is not whole, or has taken what is the users'")
	}
}

func TestWhatIsInTheVolumeDecides(t *testing.T) {
	source := image(t)
	for name, test := range map[string]struct {
		make []string
		// wants is in the error; without one there is none. copied is true if the image is there afterwards.
		wants     string
		copied    bool
		overwrite bool
	}{
		"a volume with files of others is refused":                          {make: []string{"precious"}, wants: "holds precious but no root file system"},
		"a volume with files of others is overwritten if that is asked for": {make: []string{"precious"}, overwrite: true, copied: true},
		"a jail from elsewhere stays as it is":                              {make: []string{"etc/here", "usr/bin/there"}},
		"a jail from elsewhere is overwritten if that is asked for":         {make: []string{"etc/here", "usr/bin/there"}, overwrite: true, copied: true},
		"an empty marker is of an interrupted run of long ago":              {make: []string{"etc/here", "usr/bin/there", Marker}, copied: true},
		"what a killed run left before its marker is no stranger":           {make: []string{temporaryPrefix + "new", lockName}, copied: true},
	} {
		t.Run(name, func(t *testing.T) {
			jail := t.TempDir()
			for _, rel := range test.make {
				must(t, os.MkdirAll(filepath.Dir(filepath.Join(jail, rel)), 0o755))
				must(t, os.WriteFile(filepath.Join(jail, rel), nil, 0o644))
			}
			o := options(source, jail)
			o.Overwrite = test.overwrite
			err := Run(o, &Progress{})
			if test.wants != "" {
				if err == nil || !strings.Contains(err.Error(), test.wants) {
					t.Fatalf("got %v, want %q", err, test.wants)
				}
				return
			}
			must(t, err)
			_, err = os.Lstat(filepath.Join(jail, "usr/lib/libc.so"))
			if copied := err == nil; copied != test.copied {
				t.Errorf("copied: %v", copied)
			}
			if _, err := os.Lstat(filepath.Join(jail, "mnt/host")); err != nil {
				t.Errorf("mount points are not there: %v", err)
			}
			for _, left := range []string{Marker, lockName, temporaryPrefix + "new"} {
				if _, err := os.Lstat(filepath.Join(jail, left)); err == nil && test.copied {
					t.Errorf("%s is left", left)
				}
			}
		})
	}
}

func TestWhatAKilledRunLeftIsTakenAway(t *testing.T) {
	source, jail := image(t), t.TempDir()
	must(t, os.MkdirAll(filepath.Join(jail, "usr/lib"), 0o755))
	for _, left := range []string{"usr/lib/" + temporaryPrefix + "9", temporaryPrefix + "7"} {
		must(t, os.WriteFile(filepath.Join(jail, left), []byte("half"), 0o600))
	}
	must(t, os.WriteFile(filepath.Join(jail, Marker), []byte("first\n"), 0o600))
	must(t, Run(options(source, jail), &Progress{}))
	if diff := cmp.Diff(expected(t, source), normal(tree(t, jail))); diff != "" {
		t.Error(diff)
	}
}

// TestADirectoryWithTheNameOfALeftoverStopsNothing is about users: they may make any name in the directories that they may write to.
func TestADirectoryWithTheNameOfALeftoverStopsNothing(t *testing.T) {
	source := image(t)
	for name, dir := range map[string]string{
		"a user has made the directory":                     "usr/lib/" + temporaryPrefix + "x",
		"the directory is where a file is written":          "usr/lib/" + temporaryPrefix + "0",
		"the directory is where the sentinel is written":    "etc/" + temporaryPrefix + "new",
		"the directory is where the marker is written":      temporaryPrefix + "new",
		"the directory is where Slurm's links are made":     "usr/bin/" + temporaryPrefix + "new",
		"the directory is in the place of the lock":         lockName,
		"the directory is in the place of the marker":       Marker,
		"the directory is where another was moved to aside": "usr/lib/" + temporaryPrefix + "0.aside.0",
	} {
		for _, interrupted := range []bool{true, false} {
			if interrupted && dir == Marker {
				continue
			}
			t.Run(fmt.Sprintf("%s, interrupted %t", name, interrupted), func(t *testing.T) {
				jail := t.TempDir()
				must(t, os.MkdirAll(filepath.Join(jail, dir), 0o755))
				must(t, os.MkdirAll(filepath.Join(jail, "usr/lib", temporaryPrefix+"0", "below"), 0o755))
				must(t, os.WriteFile(filepath.Join(jail, dir, "precious"), []byte("mine"), 0o600))
				o := options(source, jail)
				o.Overwrite = true
				if interrupted {
					must(t, os.WriteFile(filepath.Join(jail, Marker), []byte("overwrite\n"), 0o600))
				}
				must(t, Run(o, &Progress{}))
				if got := read(t, jail, "etc/os-release"); got != "release 1\n" {
					t.Errorf("os-release is %q", got)
				}
				if _, err := os.Lstat(filepath.Join(jail, Sentinel)); err != nil {
					t.Error(err)
				}
				found, err := filepath.Glob(filepath.Join(jail, filepath.Dir(dir), Marker+"*", "precious"))
				if err != nil || len(found) != 1 {
					t.Errorf("the user's file is at %v, %v", found, err)
				}
			})
		}
	}
}

func TestTwoRunsExcludeEachOther(t *testing.T) {
	source, jail := image(t), t.TempDir()
	fd, err := unix.Open(filepath.Join(jail, lockName), unix.O_CREAT|unix.O_RDWR, 0o600)
	must(t, err)
	defer func() { must(t, unix.Close(fd)) }()
	must(t, unix.Flock(fd, unix.LOCK_EX))
	o := options(source, jail)
	for _, o.Patience = range []time.Duration{0, time.Millisecond} {
		if err := Run(o, &Progress{}); err == nil || !strings.Contains(err.Error(), "another populate-jail") {
			t.Errorf("with patience for %s: %v", o.Patience, err)
		}
	}
}

func TestARunWaitsForTheEndOfTheOneBefore(t *testing.T) {
	source, jail := image(t), t.TempDir()
	fd, err := unix.Open(filepath.Join(jail, lockName), unix.O_CREAT|unix.O_RDWR, 0o600)
	must(t, err)
	must(t, unix.Flock(fd, unix.LOCK_EX))
	o := options(source, jail)
	o.Patience = time.Minute
	// The run before ends as soon as this one waits for it.
	var waits []string
	o.Log = func(format string, args ...any) {
		if len(waits) == 0 {
			must(t, errors.Join(unix.Unlink(filepath.Join(jail, lockName)), unix.Close(fd)))
		}
		waits = append(waits, fmt.Sprintf(format, args...))
	}
	must(t, Run(o, &Progress{}))
	if len(waits) == 0 || !strings.HasPrefix(waits[0], "Another populate-jail is writing to "+jail) {
		t.Errorf("it says %q", waits)
	}
	if diff := cmp.Diff(expected(t, source), normal(tree(t, jail))); diff != "" {
		t.Error(diff)
	}
}

func TestASourceThatIsNoWholeRootIsRefused(t *testing.T) {
	source := t.TempDir()
	if err := Run(options(source, t.TempDir()), &Progress{}); err == nil || !strings.Contains(err.Error(), "no root file system") {
		t.Errorf("got %v", err)
	}
	for _, dir := range []string{"etc", "usr", Marker} {
		must(t, os.Mkdir(filepath.Join(source, dir), 0o755))
	}
	if err := Run(options(source, t.TempDir()), &Progress{}); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("got %v", err)
	}
}

func TestHostileJails(t *testing.T) {
	source := image(t)
	host := t.TempDir()
	must(t, os.WriteFile(filepath.Join(host, "shadow"), []byte("secret"), 0o600))
	before := tree(t, host)
	for name, test := range map[string]struct {
		links  map[string]string
		wants  string
		copied bool
	}{
		"links to the host where the image has directories": {links: map[string]string{"etc": host, "usr": host, "home": host, "var": "/proc/1/root"}, copied: true},
		"links to the host where the image has files":       {links: map[string]string{"etc/os-release": host + "/shadow", "usr/bin/sh": host + "/shadow"}, copied: true},
		"a mount point that is a link to the host":          {links: map[string]string{"mnt/host": host}, wants: "/mnt/host of the jail is a symbolic link that leads nowhere"},
		"a mount point that is a loop":                      {links: map[string]string{"run": "run"}, wants: "run of the jail: a symbolic link on the way leads in a circle"},
		"a sub-mount through a link to the root of init":    {links: map[string]string{"data": "/proc/1/root/srv"}, wants: "data"},
		"temporary names that are links":                    {links: map[string]string{temporaryPrefix + "0": host + "/shadow", temporaryPrefix + "new": host + "/shadow"}, copied: true},
	} {
		t.Run(name, func(t *testing.T) {
			jail := t.TempDir()
			for rel, to := range test.links {
				must(t, os.MkdirAll(filepath.Dir(filepath.Join(jail, rel)), 0o755))
				must(t, os.Symlink(to, filepath.Join(jail, rel)))
			}
			o := options(source, jail)
			o.Overwrite = true
			err := Run(o, &Progress{})
			if diff := cmp.Diff(before, tree(t, host)); diff != "" {
				t.Errorf("the host has changed: %s", diff)
			}
			if test.wants != "" && (err == nil || !strings.Contains(err.Error(), test.wants)) {
				t.Errorf("got %v, want %q", err, test.wants)
			}
			if test.copied {
				must(t, err)
				if got := read(t, jail, "etc/os-release"); got != "release 1\n" {
					t.Errorf("os-release is %q", got)
				}
			}
		})
	}
}

// mounted mounts a tmpfs.
func mounted(t *testing.T, data string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, data); err != nil {
		t.Skipf("mounting a tmpfs: %v", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

func TestAFullDiskIsToldWithThePathAndGoneOnWith(t *testing.T) {
	source := image(t)
	jail := mounted(t, "size=64k")
	err := Run(options(source, jail), &Progress{})
	if err == nil || !strings.Contains(err.Error(), "the jail is full") || !strings.Contains(err.Error(), "/usr/lib/libc.so") {
		t.Fatalf("got %v", err)
	}
	must(t, unix.Mount("", jail, "", unix.MS_REMOUNT, "size=64m"))
	must(t, Run(options(source, jail), &Progress{}))
	if got := read(t, jail, "usr/lib/libc.so"); len(got) != 100_000 {
		t.Errorf("%d bytes", len(got))
	}
}

func TestAReadOnlyJailIsTold(t *testing.T) {
	source := image(t)
	jail := mounted(t, "ro")
	if err := Run(options(source, jail), &Progress{}); err == nil || !strings.Contains(err.Error(), "the jail is read-only") {
		t.Errorf("got %v", err)
	}
}
