// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package container

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/container/rootfs"
	"github.com/coxswain-hpc/coxswain/internal/node/image/mount"
)

func TestFlagsOfMounts(t *testing.T) {
	const atime = unix.MOUNT_ATTR__ATIME
	set := func(attributes uint64) mountFlags {
		return mountFlags{attributes: rootfs.Attributes{Set: attributes}}
	}
	for name, test := range map[string]struct {
		flags string
		want  mountFlags
	}{
		"read-only":                          {"ro", set(unix.MOUNT_ATTR_RDONLY)},
		"the last of two opposites counts":   {"ro+rw", set(0)},
		"and in the other order":             {"rw+ro", set(unix.MOUNT_ATTR_RDONLY)},
		"several together":                   {"ro+nosuid+nodev+noexec+nodiratime", set(unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_NODIRATIME)},
		"several are taken back":             {"nosuid+nodev+noexec+nodiratime+suid+dev+exec+diratime", set(0)},
		"the default is made if missing":     {"x-create=auto+rbind", mountFlags{create: true, recursive: true}},
		"a bind without what is below":       {"x-create=auto+rbind+bind", mountFlags{create: true}},
		"one that may fail":                  {"nofail", mountFlags{optional: true}},
		"no times of reading":                {"noatime", mountFlags{attributes: rootfs.Attributes{Set: unix.MOUNT_ATTR_NOATIME, Clear: atime}}},
		"the last of three kinds of times":   {"noatime+relatime+strictatime", mountFlags{attributes: rootfs.Attributes{Set: unix.MOUNT_ATTR_STRICTATIME, Clear: atime}}},
		"times of reading as the kernel has": {"ro+noatime+atime", mountFlags{attributes: rootfs.Attributes{Set: unix.MOUNT_ATTR_RDONLY, Clear: atime}}},
		"a propagation":                      {"shared+rprivate", mountFlags{attributes: rootfs.Attributes{Propagation: unix.MS_PRIVATE}}},
		"read-only, and not to be bound":     {"ro+unbindable", mountFlags{attributes: rootfs.Attributes{Set: unix.MOUNT_ATTR_RDONLY, Propagation: unix.MS_UNBINDABLE}}},
		"options of a tmpfs":                 {"size=1G+mode=700+noswap", mountFlags{data: map[string]string{"size": "1G", "mode": "700", "noswap": ""}}},
		"flags without an effect":            {"defaults+silent+loud+x-detach+async+lazytime", set(0)},
	} {
		t.Run(name, func(t *testing.T) {
			if test.want.data == nil {
				test.want.data = map[string]string{}
			}
			got, err := flagsOf(strings.Split(test.flags, "+"))
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(mountFlags{})); err != nil || diff != "" {
				t.Errorf("%v, %s", err, diff)
			}
		})
	}
	for _, flag := range []string{"", "no", "rrprivate", "RO", "x-creates", "nofails", "noro"} {
		if got, err := flagsOf([]string{flag}); err == nil {
			t.Errorf("%q is %+v", flag, got)
		}
	}
}

// TestEveryFlagThatUsersMayWriteIsKnown has the flags of mount(8) and tmpfs(5).
func TestEveryFlagThatUsersMayWriteIsKnown(t *testing.T) {
	const all = `defaults ro rw suid nosuid dev nodev exec noexec atime noatime diratime nodiratime relatime norelatime strictatime nostrictatime
		lazytime nolazytime sync async dirsync mand nomand iversion noiversion bind rbind private rprivate slave rslave shared rshared unbindable
		runbindable nofail silent loud x-detach x-create=dir x-create=file x-create=auto size=1 nr_blocks=1 nr_inodes=1 mode=1 uid=0 gid=0
		huge=never mpol=default inode32 inode64 noswap`
	for flag := range strings.FieldsSeq(all) {
		mounts, err := mount.Parse("tmpfs:/x:" + flag)
		if err != nil {
			t.Errorf("%s: %v", flag, err)
			continue
		}
		if _, err := flagsOf(mounts[0].Flags); err != nil {
			t.Errorf("users may write %s: %v", flag, err)
		}
	}
}

func FuzzFlags(f *testing.F) {
	for _, text := range []string{"ro+nosuid", "x-create=dir+rbind", "size=1G", "noatime+relatime", "rprivate", "nofail+silent", "norw", "=", "a=b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range []string{"/a", "tmpfs", "umount"} {
			mounts, err := mount.Parse(kind + ":/x:" + text)
			if err == nil {
				mounts, err = mount.Expand(mounts, func(string) (string, bool) { return "", false })
			}
			if err != nil || len(mounts) != 1 {
				continue
			}
			flags, err := flagsOf(mounts[0].Flags)
			if err != nil {
				t.Errorf("users may write %q for %s: %v", text, kind, err)
			}
			if kind != "tmpfs" && len(flags.data) > 0 {
				t.Errorf("%q has options of tmpfs for %s: %q", text, kind, flags.data)
			}
		}
	})
}
