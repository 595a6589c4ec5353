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

// attributeFlags are flags that set an attribute, and others that clear it.
var attributeFlags = map[string]struct {
	attribute uint64
	clear     bool
}{
	"ro": {unix.MOUNT_ATTR_RDONLY, false}, "rw": {unix.MOUNT_ATTR_RDONLY, true},
	"nosuid": {unix.MOUNT_ATTR_NOSUID, false}, "suid": {unix.MOUNT_ATTR_NOSUID, true},
	"nodev": {unix.MOUNT_ATTR_NODEV, false}, "dev": {unix.MOUNT_ATTR_NODEV, true},
	"noexec": {unix.MOUNT_ATTR_NOEXEC, false}, "exec": {unix.MOUNT_ATTR_NOEXEC, true},
	"nodiratime": {unix.MOUNT_ATTR_NODIRATIME, false}, "diratime": {unix.MOUNT_ATTR_NODIRATIME, true},
}

// atimes are values of the one attribute that has several.
var atimes = map[string]uint64{"noatime": unix.MOUNT_ATTR_NOATIME, "strictatime": unix.MOUNT_ATTR_STRICTATIME, "relatime": unix.MOUNT_ATTR_RELATIME}

var propagations = map[string]uint64{"private": unix.MS_PRIVATE, "slave": unix.MS_SLAVE, "shared": unix.MS_SHARED, "unbindable": unix.MS_UNBINDABLE}

// flagsOf reads flags, of which a later one overrides an earlier one.
func flagsOf(flags []string) (mountFlags, error) {
	out := mountFlags{data: map[string]string{}}
	for _, flag := range flags {
		if a, ok := attributeFlags[flag]; ok {
			out.attributes.Set &^= a.attribute
			if !a.clear {
				out.attributes.Set |= a.attribute
			}
			continue
		}
		if atime, ok := atimes[flag]; ok {
			out.attributes.Set, out.attributes.Clear = out.attributes.Set&^unix.MOUNT_ATTR__ATIME|atime, unix.MOUNT_ATTR__ATIME
			continue
		}
		if propagation, ok := propagations[strings.TrimPrefix(flag, "r")]; ok {
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
		case flag == "silent" || flag == "x-detach":
		case hasValue:
			out.data[name] = value
		default:
			return out, fmt.Errorf("the flag %s is not known", flag)
		}
	}
	return out, nil
}
