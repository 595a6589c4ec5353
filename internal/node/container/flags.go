// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package container

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/container/rootfs"
)

// mountFlags are the flags of an entry of --container-mounts.
type mountFlags struct {
	create, recursive, optional bool
	attributes                  rootfs.Attributes
	// data are options of a tmpfs.
	data map[string]string
}

// attributeOf returns the attribute of a mount that a flag sets, or clears.
func attributeOf(flag string) (attribute uint64, clears, is bool) {
	name, clears := strings.CutPrefix(flag, "no")
	switch name {
	case "suid":
		return unix.MOUNT_ATTR_NOSUID, !clears, true
	case "dev":
		return unix.MOUNT_ATTR_NODEV, !clears, true
	case "exec":
		return unix.MOUNT_ATTR_NOEXEC, !clears, true
	case "diratime":
		return unix.MOUNT_ATTR_NODIRATIME, !clears, true
	}
	switch flag {
	case "ro":
		return unix.MOUNT_ATTR_RDONLY, false, true
	case "rw":
		return unix.MOUNT_ATTR_RDONLY, true, true
	}
	return 0, false, false
}

// atimeOf returns the value of the one attribute that has several. Linux's default is relatime.
func atimeOf(flag string) (value uint64, is bool) {
	switch flag {
	case "noatime":
		return unix.MOUNT_ATTR_NOATIME, true
	case "strictatime", "norelatime":
		return unix.MOUNT_ATTR_STRICTATIME, true
	case "relatime", "atime", "nostrictatime":
		return unix.MOUNT_ATTR_RELATIME, true
	}
	return 0, false
}

// propagationOf returns a propagation. The flags that begin with r are for all mounts below as well.
func propagationOf(flag string) (value uint64, is bool) {
	switch strings.TrimPrefix(flag, "r") {
	case "private":
		return unix.MS_PRIVATE, true
	case "slave":
		return unix.MS_SLAVE, true
	case "shared":
		return unix.MS_SHARED, true
	case "unbindable":
		return unix.MS_UNBINDABLE, true
	}
	return 0, false
}

// hasNoEffect reports whether a flag is one of a whole file system, which users cannot change, or the default of the kernel.
func hasNoEffect(flag string) bool {
	switch flag {
	case "defaults", "silent", "loud", "x-detach", "lazytime", "nolazytime", "sync", "async", "dirsync", "mand", "nomand", "iversion", "noiversion":
		return true
	}
	return false
}

// flagsOf reads flags, of which a later one overrides an earlier one. It knows all that mount.Parse takes.
func flagsOf(flags []string) (mountFlags, error) {
	out := mountFlags{data: map[string]string{}}
	for _, flag := range flags {
		if attribute, clears, is := attributeOf(flag); is {
			out.attributes.Set &^= attribute
			if !clears {
				out.attributes.Set |= attribute
			}
			continue
		}
		if atime, is := atimeOf(flag); is {
			out.attributes.Set, out.attributes.Clear = out.attributes.Set&^unix.MOUNT_ATTR__ATIME|atime, unix.MOUNT_ATTR__ATIME
			continue
		}
		if propagation, is := propagationOf(flag); is {
			out.attributes.Propagation = propagation
			continue
		}
		name, value, hasValue := strings.Cut(flag, "=")
		switch {
		case name == "x-create":
			out.create = true
		case flag == "rbind":
			out.recursive = true
		case flag == "bind":
			out.recursive = false
		case flag == "nofail":
			out.optional = true
		case hasNoEffect(flag):
		case hasValue, flag == "inode32", flag == "inode64", flag == "noswap":
			out.data[name] = value
		default:
			return out, fmt.Errorf("the flag %s is not known", flag)
		}
	}
	return out, nil
}
