// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package jail_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/jail"
)

// hostile makes a jail whose links lead elsewhere, beside a file that nobody in it may see.
func hostile(t testing.TB) *jail.Root {
	t.Helper()
	dir := t.TempDir()
	inside := filepath.Join(dir, "jail")
	for _, d := range []string{"etc", "usr/lib"} {
		if err := os.MkdirAll(filepath.Join(inside, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{"secret": "the host's", "jail/etc/passwd": "the jail's", "jail/usr/lib/os-release": "debian"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"etc/os-release": "../usr/lib/os-release", "etc/absolute": "/etc/passwd", "etc/up": "../../secret", "etc/far": "../../../../../../../etc/hostname",
		"etc/host": filepath.Join(dir, "secret"), "etc/proc": "/proc/1/root/etc/passwd", "etc/a": "b", "etc/b": "a", "lib": "usr/lib", "out": dir,
	} {
		if err := os.Symlink(target, filepath.Join(inside, link)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := jail.Open(inside)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func TestPathsAreResolvedInTheJail(t *testing.T) {
	root := hostile(t)
	for name, test := range map[string]struct {
		path, want string
		err        error
	}{
		"a file":                            {path: "/etc/passwd", want: "the jail's"},
		"a relative link":                   {path: "etc/os-release", want: "debian"},
		"an absolute link":                  {path: "etc/absolute", want: "the jail's"},
		"a link in the middle":              {path: "/lib/os-release", want: "debian"},
		"dots do not leave the root":        {path: "../../../etc/passwd", want: "the jail's"},
		"a link above the root":             {path: "/etc/up", err: fs.ErrNotExist},
		"a link far above the root":         {path: "/etc/far", err: fs.ErrNotExist},
		"a link to the host":                {path: "/etc/host", err: fs.ErrNotExist},
		"a link to the root of process one": {path: "/etc/proc", err: fs.ErrNotExist},
		"a link to a directory of the host": {path: "/out/secret", err: fs.ErrNotExist},
		"a circle":                          {path: "/etc/a", err: unix.ELOOP},
		"a file that is not there":          {path: "/etc/shadow", err: fs.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := root.Open(test.path)
			if test.err != nil {
				if !errors.Is(err, test.err) || !strings.Contains(err.Error(), test.path) {
					t.Fatalf("%v, want %v that names %s", err, test.err, test.path)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = file.Close() }()
			content, err := io.ReadAll(file)
			if err != nil || string(content) != test.want {
				t.Errorf("read %q, %v; want %q", content, err, test.want)
			}
		})
	}
}

// TestMagicLinksLeadNowhere has a real /proc in the jail, whose links would leave it whatever the root is.
func TestMagicLinksLeadNowhere(t *testing.T) {
	root, err := jail.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	for _, path := range []string{"/proc/self/root/etc/passwd", "/proc/self/cwd", "/proc/self/fd/0"} {
		if file, err := root.Open(path); !errors.Is(err, unix.ELOOP) {
			t.Errorf("%s: %v, %v; want ELOOP", path, file, err)
		}
	}
}

func TestALinkIsReadAndNotFollowed(t *testing.T) {
	root := hostile(t)
	if got, err := root.Link("/etc/os-release"); err != nil || got != "../usr/lib/os-release" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := root.Link("/etc/passwd"); err == nil || !strings.Contains(err.Error(), "/etc/passwd") {
		t.Errorf("a file read as a link: %v", err)
	}
}

// FuzzOpen looks for a path that reads the file outside.
func FuzzOpen(f *testing.F) {
	root := hostile(f)
	for _, path := range []string{"/etc/host", "out/../secret", "lib/../../secret", "etc/up/../..", "./etc/./passwd", ""} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		file, err := root.Open(path)
		if err != nil {
			return
		}
		defer func() { _ = file.Close() }()
		content, _ := io.ReadAll(io.LimitReader(file, 64))
		if strings.Contains(string(content), "the host's") {
			t.Errorf("%q reads a file outside of the jail", path)
		}
	})
}
