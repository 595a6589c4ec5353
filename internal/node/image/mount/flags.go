// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"fmt"
	"strings"
)

// checkFlag returns what is wrong about a flag of a user.
//
//	ro, nosuid, rprivate …  → every kind; mount(8) explains them
//	x-create=dir|file|auto  → what is made of a target that is missing
//	nofail, silent          → an entry that cannot be mounted is left out, without or with a message
//	size=1G, mode=755 …     → tmpfs alone; tmpfs(5) explains them
func checkFlag(kind Kind, flag string) error {
	name, value, hasValue := strings.Cut(flag, "=")
	switch {
	case hasVariable(flag):
		return nil
	case flag == "":
		return fmt.Errorf("a flag is empty: separate flags by single + signs")
	case isFlag(flag), name == "x-create" && (value == "dir" || value == "file" || value == "auto"):
		return nil
	case name == "x-create":
		return fmt.Errorf("the flag %q does not exist: use x-create=dir, x-create=file or x-create=auto", flag)
	case isTmpfsFlag(name, hasValue) && kind == Tmpfs:
		return nil
	case isTmpfsFlag(name, hasValue):
		return fmt.Errorf("the flag %q is for tmpfs alone: remove it", flag)
	case strings.ContainsAny(flag, ":"):
		return fmt.Errorf("the flag %q does not exist: separate flags by + signs, as in ro+nosuid", flag)
	}
	return fmt.Errorf("the flag %q does not exist: use those of mount(8), separated by + signs, as in ro+nosuid", flag)
}

// isFlag reports whether a word is a flag of any kind of entry.
func isFlag(word string) bool {
	switch word {
	case "defaults", "ro", "rw", "suid", "nosuid", "dev", "nodev", "exec", "noexec",
		"atime", "noatime", "diratime", "nodiratime", "relatime", "norelatime", "strictatime", "nostrictatime", "lazytime", "nolazytime",
		"sync", "async", "dirsync", "mand", "nomand", "iversion", "noiversion",
		"bind", "rbind", "private", "rprivate", "slave", "rslave", "shared", "rshared", "unbindable", "runbindable",
		"nofail", "silent", "loud", "x-detach":
		return true
	}
	return false
}

// isTmpfsFlag reports whether a flag is an option of the file system tmpfs.
func isTmpfsFlag(name string, hasValue bool) bool {
	switch name {
	case "size", "nr_blocks", "nr_inodes", "mode", "uid", "gid", "huge", "mpol":
		return hasValue
	case "inode32", "inode64", "noswap":
		return !hasValue
	}
	return false
}
