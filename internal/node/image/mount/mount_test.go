// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package mount_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/node/image/mount"
)

// bind returns a bind mount with flags of the user.
func bind(source, target string, flags ...string) mount.Mount {
	return mount.Mount{Kind: mount.Bind, Source: source, Target: target, Flags: append([]string{"x-create=auto", "rbind"}, flags...)}
}

// tmpfs returns a file system in memory with flags of the user.
func tmpfs(target string, flags ...string) mount.Mount {
	return mount.Mount{Kind: mount.Tmpfs, Target: target, Flags: append([]string{"x-create=dir"}, flags...)}
}

func TestEntriesAreRead(t *testing.T) {
	umount := mount.Mount{Kind: mount.Umount, Target: "/sys", Flags: []string{"x-detach"}}
	for name, test := range map[string]struct {
		arguments []string
		want      []mount.Mount
	}{
		"a source alone has the same path inside":          {[]string{"/data"}, []mount.Mount{bind("/data", "/data")}},
		"a relative source alone has the same path inside": {[]string{"./data"}, []mount.Mount{bind("./data", "./data")}},
		"a source has another path inside":                 {[]string{"/tmp:/tmp2"}, []mount.Mount{bind("/tmp", "/tmp2")}},
		"the source is a directory above":                  {[]string{"..:/up"}, []mount.Mount{bind("..", "/up")}},
		"flags stand after the default ones": {
			[]string{"/a:/b:ro+nosuid+nodev+rprivate"}, []mount.Mount{bind("/a", "/b", "ro", "nosuid", "nodev", "rprivate")},
		},
		"ro and unbindable stand together": {
			[]string{"/a:/b:ro+unbindable"}, []mount.Mount{bind("/a", "/b", "ro", "unbindable")},
		},
		"a user may say what is created": {
			[]string{"/a:/b:x-create=file"}, []mount.Mount{bind("/a", "/b", "x-create=file")},
		},
		"empty flags are none": {[]string{"/a:/b:"}, []mount.Mount{bind("/a", "/b")}},
		"a comma separates entries": {
			[]string{"/a:/b,/c:/d:ro"}, []mount.Mount{bind("/a", "/b"), bind("/c", "/d", "ro")},
		},
		"several options add up":             {[]string{"/a:/b", "/c"}, []mount.Mount{bind("/a", "/b"), bind("/c", "/c")}},
		"an entry that was there is dropped": {[]string{"/a,/a:/a", "/a:/a:"}, []mount.Mount{bind("/a", "/a")}},
		"an entry with other flags stays":    {[]string{"/a,/a:/a:ro"}, []mount.Mount{bind("/a", "/a"), bind("/a", "/a", "ro")}},
		"tmpfs is an empty file system": {
			[]string{"tmpfs:/scratch:size=1G+mode=700+huge=within_size"},
			[]mount.Mount{tmpfs("/scratch", "size=1G", "mode=700", "huge=within_size")},
		},
		"umount detaches":                                   {[]string{"umount:/sys"}, []mount.Mount{umount}},
		"a directory called tmpfs is a path":                {[]string{"./tmpfs:/a"}, []mount.Mount{bind("./tmpfs", "/a")}},
		"blanks, tabs, line feeds and backslashes are kept": {[]string{"/a b\t\n\\:/c d"}, []mount.Mount{bind("/a b\t\n\\", "/c d")}},
		"names of variables are kept":                       {[]string{"$HOME/a:/b/${USER}"}, []mount.Mount{bind("$HOME/a", "/b/${USER}")}},
		"a target may go up and stay in the root directory": {[]string{"/a:/b/../c"}, []mount.Mount{bind("/a", "/b/../c")}},
		"a flag may be a variable":                          {[]string{"/a:/b:$MODE"}, []mount.Mount{bind("/a", "/b", "$MODE")}},
		"/tmp over the container's own":                     {[]string{"/tmp:/tmp"}, []mount.Mount{bind("/tmp", "/tmp")}},
		"nofail and silent are flags": {
			[]string{"/a:/b:nofail+silent"}, []mount.Mount{bind("/a", "/b", "nofail", "silent")},
		},
		"every kind of propagation is a flag": {
			[]string{"/a:/b:private+slave+rslave+shared+rshared+runbindable+bind"},
			[]mount.Mount{bind("/a", "/b", "private", "slave", "rslave", "shared", "rshared", "runbindable", "bind")},
		},
		"a dollar sign before a digit stands for itself here": {[]string{"/a$1:/b"}, []mount.Mount{bind("/a$1", "/b")}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := mount.Parse(test.arguments...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%q is read otherwise (-want +got):\n%s", test.arguments, diff)
			}
			var printed []string
			for _, m := range got {
				printed = append(printed, m.String())
			}
			if again, err := mount.Parse(strings.Join(printed, ",")); err != nil || cmp.Diff(got, again) != "" {
				t.Errorf("%q is printed as %q, which is %v, %v", test.arguments, printed, again, err)
			}
		})
	}
}

func TestAWrongEntryIsAnError(t *testing.T) {
	const source = `mount source must be a relative path, an absolute path, "tmpfs" or "umount"`
	for name, test := range map[string]struct{ argument, want string }{
		"nothing":                      {"", "--container-mounts: argument required"},
		"a colon":                      {":", "--container-mounts: invalid format: :"},
		"an empty target":              {"x:", "--container-mounts: invalid format: x:"},
		"an empty source":              {":/x", "--container-mounts: invalid format: :/x"},
		"an empty entry":               {"/a,,/b", "--container-mounts: invalid format: "},
		"a comma at the end":           {"/a,", "--container-mounts: invalid format: "},
		"flags without a target":       {"/a::ro", "--container-mounts: invalid format: /a::ro"},
		"a NUL byte":                   {"/a\x00", "--container-mounts: invalid format: /a\x00"},
		"a word as source":             {"data:/data", "could not add mount entry: data:/data: " + source},
		"a tilde":                      {"~/a:/b", "could not add mount entry: ~/a:/b: " + source},
		"a dollar sign before no name": {"$1:/b", "could not add mount entry: $1:/b: " + source},
		"a word as target": {
			"/a:b", "could not add mount entry: /a:b: mount target must be a relative or an absolute path: let it begin with . or /",
		},
		"tmpfs without a target": {"tmpfs", "could not add mount entry: tmpfs:tmpfs: tmpfs needs a target: write tmpfs:/DIRECTORY"},
		"a target above the root": {
			"/a:/../b", "could not add mount entry: /a:/../b: mount target leaves the container's root directory: write one below it",
		},
		"a relative target above it": {
			"/a:../b", "could not add mount entry: /a:../b: mount target leaves the container's root directory: write one below it",
		},
		"an unknown flag": {
			"/a:/b:readonly",
			`could not add mount entry: /a:/b: the flag "readonly" does not exist: use those of mount(8), separated by + signs, as in ro+nosuid`,
		},
		"flags separated by colons": {
			"/a:/b:ro:nosuid", `could not add mount entry: /a:/b: the flag "ro:nosuid" does not exist: separate flags by + signs, as in ro+nosuid`,
		},
		"two plus signs": {
			"/a:/b:ro++nosuid", "could not add mount entry: /a:/b: a flag is empty: separate flags by single + signs",
		},
		"an unknown way to create": {
			"/a:/b:x-create=link",
			`could not add mount entry: /a:/b: the flag "x-create=link" does not exist: use x-create=dir, x-create=file or x-create=auto`,
		},
		"an option of tmpfs on a bind": {"/a:/b:size=1G", `could not add mount entry: /a:/b: the flag "size=1G" is for tmpfs alone: remove it`},
		"an option of tmpfs, no value": {"tmpfs:/b:size", `could not add mount entry: tmpfs:/b: the flag "size" does not exist`},
		"a second entry that is wrong": {"/a,b", "could not add mount entry: b:b: " + source},
		"a second option that is wrong": {
			"/a:/b,umount", "could not add mount entry: umount:umount: umount needs a target: write umount:/DIRECTORY",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := mount.Parse(test.argument)
			if err == nil {
				t.Fatalf("%q is %v", test.argument, got)
			}
			if !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("the error is\n%s, not\n%s", err, test.want)
			}
		})
	}
	if err := (&mount.MissingSourceError{Path: "/a"}).Error(); err != "--container-mounts: source path does not exist: /a" {
		t.Errorf("the error of a source that does not exist is %q", err)
	}
}

// job is the environment of a job in tests.
func job(name string) (string, bool) {
	value, set := map[string]string{
		"USER": "alice", "HOME": "/home/alice", "EMPTY": "", "MODE": "ro", "_1": "one",
		"WORD": "word", "UP": "..", "ODD": "/a:/b,$USER", "BAD": "ro+rw",
	}[name]
	return value, set
}

func TestVariablesAreReplaced(t *testing.T) {
	for name, test := range map[string]struct {
		argument string
		want     []mount.Mount
		err      string
	}{
		"a name":                  {argument: "/scratch/$USER:/data", want: []mount.Mount{bind("/scratch/alice", "/data")}},
		"a name in braces":        {argument: "/scratch/${USER}x:/data", want: []mount.Mount{bind("/scratch/alicex", "/data")}},
		"a name at the beginning": {argument: "$HOME", want: []mount.Mount{bind("/home/alice", "/home/alice")}},
		"two names": {
			argument: "/$USER$_1-$USER.d", want: []mount.Mount{bind("/aliceone-alice.d", "/aliceone-alice.d")},
		},
		"a variable that is empty":               {argument: "/a$EMPTY:/b", want: []mount.Mount{bind("/a", "/b")}},
		"a flag":                                 {argument: "/a:/b:$MODE", want: []mount.Mount{bind("/a", "/b", "ro")}},
		"a value makes no other entry":           {argument: "$ODD:/b", want: []mount.Mount{bind("/a:/b,$USER", "/b")}},
		"dollar signs that stand for themselves": {argument: "/$/$1$:/b", want: []mount.Mount{bind("/$/$1$", "/b")}},
		"two entries that become one":            {argument: "$HOME,/home/alice", want: []mount.Mount{bind("/home/alice", "/home/alice")}},
		"a backquote stands for itself":          {argument: "/`id`:/b", want: []mount.Mount{bind("/`id`", "/b")}},
		"a tmpfs":                                {argument: "tmpfs:/t/$USER", want: []mount.Mount{tmpfs("/t/alice")}},
		"a variable that is not set": {
			argument: "/$NOPE:/b",
			err: "could not add mount entry: /$NOPE:/b: the variable NOPE is not set in the job's environment: " +
				"set it, or write the path itself",
		},
		"a command": {
			argument: "/$(id):/b", err: "could not add mount entry: /$(id):/b: commands in $(…) do not run: set a variable, and write $NAME",
		},
		"braces around something else": {
			argument: "/${USER-x}:/b",
			err:      "could not add mount entry: /${USER-x}:/b: ${ begins no name of a variable: only $NAME and ${NAME} are replaced",
		},
		"braces without an end": {argument: "/${USER:/b", err: "could not add mount entry: /${USER:/b: ${ begins no name"},
		"a value that is no path": {
			argument: "$WORD:/b", err: "could not add mount entry: $WORD:/b: mount source must be a relative path",
		},
		"a value that is empty and no path": {
			argument: "$EMPTY:/b", err: "could not add mount entry: $EMPTY:/b: mount source must be a relative path",
		},
		"a target that leaves the root directory": {
			argument: "/a:/$UP/b",
			err:      `could not add mount entry: /a:/$UP/b: the target "/../b" leaves the container's root directory: check the variable`,
		},
		"a value that holds two flags": {
			argument: "/a:/b:$BAD", err: `could not add mount entry: /a:/b:$BAD: the flag "ro+rw" does not exist`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			mounts, err := mount.Parse(test.argument)
			if err != nil {
				t.Fatal(err)
			}
			got, err := mount.Expand(mounts, job)
			if test.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), test.err) {
					t.Errorf("the error is %v, not\n%s", err, test.err)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("%q becomes something else, %v (-want +got):\n%s", test.argument, err, diff)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"/a:/b:ro", "tmpfs:/a:size=1", "umount:/a", "$HOME,./a:/${X}", "/a,/a", "/$(x)", "/$"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, argument string) {
		mounts, err := mount.Parse(argument)
		if err != nil {
			return
		}
		var printed []string
		for _, m := range mounts {
			printed = append(printed, m.String())
		}
		if again, err := mount.Parse(strings.Join(printed, ",")); err != nil || cmp.Diff(mounts, again) != "" {
			t.Errorf("%q is printed as %q, which is %v, %v", argument, printed, again, err)
		}
		expanded, err := mount.Expand(mounts, job)
		for _, m := range expanded {
			if m.Target == "" || !strings.ContainsRune("./", rune(m.Target[0])) || (m.Kind == mount.Bind) != (m.Source != "") {
				t.Errorf("%q becomes %+v, %v", argument, m, err)
			}
		}
	})
}
