// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package squash

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// source is what the file system of mount points is called in /proc/self/mountinfo.
const source = "coxswain-images"

// detachOwn takes away what a Mounter of a process before has left at its directory. Containers keep what they have of it, and loop devices
// and squashfuses that no container needs end. Others' mounts stay.
func detachOwn(dir string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("looking for images of before: %w", err)
	}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("looking for images of before: %w", err)
	}
	for _, own := range slices.Backward(mountsAt(string(text), dir)) {
		if !own {
			break
		}
		if err := unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("taking away images of before: %w", err)
		}
	}
	return nil
}

// mountsAt returns what is mounted at a directory, the lowest first: true for what a Mounter has made. The text is that of
// /proc/self/mountinfo, see proc_pid_mountinfo(5).
func mountsAt(mountinfo, dir string) []bool {
	escaped := strings.NewReplacer("\\", `\134`, " ", `\040`, "\t", `\011`, "\n", `\012`).Replace(dir)
	var out []bool
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) < 5 || fields[4] != escaped {
			continue
		}
		end := slices.Index(fields, "-")
		out = append(out, end > 0 && len(fields) > end+2 && fields[end+1] == "tmpfs" && fields[end+2] == source)
	}
	return out
}
