// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package users_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/node/jail/users"
)

func image() users.Files {
	return users.Files{
		Passwd: "root:x:0:0:root:/root:/bin/bash\nslurm:x:401:401::/nonexistent:/usr/sbin/nologin\n",
		Group:  "root:x:0:\nsudo:x:27:\nslurm:x:401:\n",
		Shadow: "root:*:19000:0:99999:7:::\n",
	}
}

func TestThePeopleOfTheJailAreBehindTheAccountsOfTheImage(t *testing.T) {
	for name, test := range map[string]struct{ jail, added users.Files }{
		"a user made with adduser": {
			jail: users.Files{
				Passwd: "root:x:0:0:root:/root:/bin/bash\nalice:x:1000:1000:Alice,,,:/home/alice:/bin/bash\n",
				Group:  "root:x:0:\nalice:x:1000:\n", Shadow: "root:*:1::::::\nalice:$y$secret:20000:0:99999:7:::\n",
			},
			added: users.Files{
				Passwd: "alice:x:1000:1000:Alice,,,:/home/alice:/bin/bash\n", Group: "alice:x:1000:\n", Shadow: "alice:*:20000:0:99999:7:::\n",
			},
		},
		"an account whose days are counted stays so": {
			jail:  users.Files{Passwd: "a:x:1000:100::/home/a:/bin/sh\n", Shadow: "a:$y$x:20000:0:99999:7::1:\n"},
			added: users.Files{Passwd: "a:x:1000:100::/home/a:/bin/sh\n", Shadow: "a:*:20000:0:99999:7::1:\n"},
		},
		"an account without a line in shadow gets one, and no password comes out of passwd": {
			jail:  users.Files{Passwd: "a:$y$x:1000:100::/home/a:/bin/sh\n"},
			added: users.Files{Passwd: "a:x:1000:100::/home/a:/bin/sh\n", Shadow: "a:*:19000:0:99999:7:::\n"},
		},
		"members of a group that both have": {
			jail:  users.Files{Group: "sudo:x:27:alice\nvideo:x:44:alice,bob\nadm:x:4:\nslurm:x:64030:\n"},
			added: users.Files{Group: "sudo:x:27:alice\nvideo:x:44:alice,bob\nadm:x:4:\n"},
		},
		"what is not a person": {
			jail: users.Files{Passwd: "toor:x:0:0::/root:/bin/sh\nslurm:x:1001:0::/:/bin/sh\nmail:x:8:8::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n" +
				"minus:x:4294967295:0::/:/bin/sh\nx:x:-1:0::/:/bin/sh\ny:x:1002:z::/:/bin/sh\n"},
		},
		"lines that are none": {
			jail: users.Files{
				Passwd: "+::::::\n#a:x:1000:1000::/:/bin/sh\n-f:x:1000:1000::/:/bin/sh\na b:x:1000:1000::/:/bin/sh\n../a:x:1000:1000::/:/bin/sh\na:x:1000:1000::/\n" +
					"b:x:1000:1000:\x1b[2J:/:/bin/sh\n:x:1000:1000::/:/bin/sh\n",
				Group: "+:::\na:x:b:c\n", Shadow: "root:x:1:1:1:1:1:1:1\n",
			},
		},
		"a name that is there twice counts once": {
			jail:  users.Files{Passwd: "a:x:1000:1::/h:/bin/sh\na:x:1001:1::/h:/bin/sh\n"},
			added: users.Files{Passwd: "a:x:1000:1::/h:/bin/sh\n", Shadow: "a:*:19000:0:99999:7:::\n"},
		},
		"the last line has no end": {
			jail:  users.Files{Passwd: "a:x:1000:1::/h:/bin/sh"},
			added: users.Files{Passwd: "a:x:1000:1::/h:/bin/sh\n", Shadow: "a:*:19000:0:99999:7:::\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			base := image()
			want := users.Files{Passwd: base.Passwd + test.added.Passwd, Group: base.Group + test.added.Group, Shadow: base.Shadow + test.added.Shadow}
			if diff := cmp.Diff(want, users.Merge(base, test.jail)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzMerge checks for what must not happen whatever is in the jail: another root, a broken line, a password.
func FuzzMerge(f *testing.F) {
	f.Add("alice:x:1000:1000::/home/alice:/bin/bash\n", "alice:x:1000:\n", "alice:$y$secret:1:::::: \n")
	f.Add("a:x:01000:0::/:/bin/sh", "g:x:0:a", "")
	f.Fuzz(func(t *testing.T, passwd, group, shadow string) {
		base := image()
		out := users.Merge(base, users.Files{Passwd: passwd, Group: group, Shadow: shadow})
		again := users.Merge(base, users.Files{Passwd: passwd, Group: group, Shadow: shadow})
		if diff := cmp.Diff(out, again); diff != "" {
			t.Fatal(diff)
		}
		check := func(text, own string, fields int, password string) {
			rest, found := strings.CutPrefix(text, own)
			if !found {
				t.Fatalf("%q does not begin with the image's own lines", text)
			}
			for line := range strings.Lines(rest) {
				parts := strings.Split(strings.TrimSuffix(line, "\n"), ":")
				if len(parts) != fields || parts[1] != password || !strings.HasSuffix(line, "\n") {
					t.Fatalf("%q is no line of %d fields with password %s", line, fields, password)
				}
				if fields == 7 && (strings.TrimLeft(parts[2], "0") == "" || parts[0] == "root") {
					t.Fatalf("another root: %q", line)
				}
			}
		}
		check(out.Passwd, base.Passwd, 7, "x")
		check(out.Group, base.Group, 4, "x")
		check(out.Shadow, base.Shadow, 9, "*")
	})
}

func TestThePeopleOfAListAreBehindThoseThatAreThere(t *testing.T) {
	shown := users.Files{Passwd: "alice:x:1000:1000::/home/alice:/bin/sh\n", Group: "alice:x:1000:\nlab:x:2000:alice\n"}
	for name, test := range map[string]struct{ list, added users.Files }{
		"a user and a group": {
			list:  users.Files{Passwd: "bob:x:1001:1001::/home/bob:/bin/sh\n", Group: "bob:x:1001:\n"},
			added: users.Files{Passwd: "bob:x:1001:1001::/home/bob:/bin/sh\n", Group: "bob:x:1001:\n"},
		},
		"a name that is taken":             {list: users.Files{Passwd: "alice:x:1001:1001::/:/bin/sh\n", Group: "lab:x:2001:\n"}},
		"a number that is taken":           {list: users.Files{Passwd: "bob:x:1000:1000::/:/bin/sh\n", Group: "staff:x:2000:bob\n"}},
		"a number that is written with 0s": {list: users.Files{Passwd: "bob:x:01000:1000::/:/bin/sh\n", Group: "staff:x:002000:bob\n"}},
		"twice in the list": {
			list:  users.Files{Passwd: "b:x:1001:1::/:/bin/sh\nb:x:1002:1::/:/bin/sh\nc:x:1001:1::/:/bin/sh\n", Group: "g:x:3000:\ng:x:3001:b\nh:x:3000:b\n"},
			added: users.Files{Passwd: "b:x:1001:1::/:/bin/sh\n", Group: "g:x:3000:\n"},
		},
		"lines that are none do not hide the others": {
			list:  users.Files{Passwd: "b:x:1001\nroot:x:0:0::/root:/bin/sh\nc:$y$x:1002:1::/:/bin/sh", Group: "+:::\ng:x:3000:b"},
			added: users.Files{Passwd: "c:x:1002:1::/:/bin/sh\n", Group: "g:x:3000:b\n"},
		},
		"a shadow, which lists do not have": {list: users.Files{Shadow: "alice:$y$x:1::::::\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			want := users.Files{Passwd: shown.Passwd + test.added.Passwd, Group: shown.Group + test.added.Group}
			if diff := cmp.Diff(want, users.Append(shown, test.list)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzAppend checks for what must not happen whatever is in a list: another root, a broken line, two of one name or number.
func FuzzAppend(f *testing.F) {
	f.Add("alice:x:1000:1000::/home/alice:/bin/bash\n", "alice:x:1000:\n", "bob:x:01000:1000::/:/bin/sh\n", "bob:x:1001:bob")
	f.Add("", "", "a:x:1000:0::/:/bin/sh\na:x:1001:0::/:/bin/sh", "g:x:0:a\nh:x:00:a")
	f.Fuzz(func(t *testing.T, passwd, group, listedPasswd, listedGroup string) {
		shown := users.Merge(users.Files{}, users.Files{Passwd: passwd, Group: group})
		out := users.Append(shown, users.Files{Passwd: listedPasswd, Group: listedGroup})
		check := func(text, before string, fields int) {
			added, found := strings.CutPrefix(text, before)
			if !found {
				t.Fatalf("%q does not begin with %q, which was there", text, before)
			}
			taken := map[string]bool{}
			for line := range strings.Lines(before) {
				parts := strings.Split(line, ":")
				taken["name "+parts[0]], taken["number "+strings.TrimLeft(parts[2], "0")] = true, true
			}
			for line := range strings.Lines(added) {
				parts := strings.Split(strings.TrimSuffix(line, "\n"), ":")
				if len(parts) != fields || parts[1] != "x" || !strings.HasSuffix(line, "\n") {
					t.Fatalf("%q is no line of %d fields", line, fields)
				}
				number := strings.TrimLeft(parts[2], "0")
				if fields == 7 && number == "" {
					t.Fatalf("another root: %q", line)
				}
				for _, of := range []string{"name " + parts[0], "number " + number} {
					if taken[of] {
						t.Fatalf("%s of %q is taken", of, line)
					}
					taken[of] = true
				}
			}
		}
		check(out.Passwd, shown.Passwd, 7)
		check(out.Group, shown.Group, 4)
	})
}
