// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
)

func TestUsersOfListsAreShownWithAndWithoutAJail(t *testing.T) {
	write := func(path, content string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, lists := t.TempDir(), t.TempDir()
	write(filepath.Join(root, "etc/passwd"), "root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\n")
	write(filepath.Join(root, "etc/group"), "")
	write(filepath.Join(lists, "login/passwd"), "bob:x:1001:1001::/home/bob:/bin/sh\nmallory:x:1000:1000::/:/bin/sh\n")
	write(filepath.Join(lists, "login/group"), "")
	const alice, bob = "alice:x:1000:1000::/home/alice:/bin/sh\n", "bob:x:1001:1001::/home/bob:/bin/sh\n"
	for name, test := range map[string]struct{ root, want string }{
		"a jail, which wins": {root, alice + bob},
		"no jail":            {"", bob + "mallory:x:1000:1000::/:/bin/sh\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			once, cancel := context.WithCancel(t.Context())
			cancel() // it looks once before it ends
			var said bytes.Buffer
			if err := run(once, []string{"users", "--root", test.root, "--extrausers", dir, "--listed", lists}, &said); err != nil || said.Len() > 0 {
				t.Fatalf("%v, said %q", err, said.String())
			}
			got, err := os.ReadFile(filepath.Join(dir, "passwd"))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != test.want {
				t.Errorf("passwd is %q, want %q", got, test.want)
			}
		})
	}
}
