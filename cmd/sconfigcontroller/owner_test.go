// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestTheConfigDirectoryIsGivenToWhoWritesThere(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may give directories away")
	}
	host := filepath.Join(t.TempDir(), "host")
	for name, test := range map[string]struct {
		make func(etc string) error
		err  string
	}{
		"the directory is there":   {make: func(etc string) error { return os.Mkdir(filepath.Join(etc, "slurm"), 0o755) }},
		"the directory is missing": {make: func(string) error { return nil }},
		"a link leads to the host": {make: func(etc string) error { return os.Symlink(host, filepath.Join(etc, "slurm")) }, err: "/etc/slurm of the jail is not a directory"},
		"a file is in its place":   {make: func(etc string) error { return os.WriteFile(filepath.Join(etc, "slurm"), nil, 0o644) }, err: "/etc/slurm of the jail is not a directory"},
		"/etc is missing":          {make: os.Remove, err: "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			etc := filepath.Join(dir, "etc")
			if err := os.Mkdir(etc, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := test.make(etc); err != nil {
				t.Fatal(err)
			}
			err := run([]string{"--jail-path=" + dir, "--give-config-directory=1001:1002"}, io.Discard)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("%v, want %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(filepath.Join(etc, "slurm"))
			if err != nil {
				t.Fatal(err)
			}
			if s := info.Sys().(*syscall.Stat_t); s.Uid != 1001 || s.Gid != 1002 {
				t.Errorf("it belongs to %d:%d", s.Uid, s.Gid)
			}
		})
	}
}

func FuzzParseOwner(f *testing.F) {
	for _, text := range []string{"0:0", "1001:1002", "1001", "-1:5", "a:b", "4294967295:0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if o, err := parseOwner(text); err == nil && (o.uid < 0 || o.gid < 0) {
			t.Errorf("%q: %+v", text, o)
		}
	})
}
