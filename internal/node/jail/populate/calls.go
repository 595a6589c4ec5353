// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package populate

import (
	"errors"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// stat looks at an entry of a directory, or with an empty name at the directory itself.
func stat(dir int, name string, st *unix.Statx_t) error {
	return unix.Statx(dir, name, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, st)
}

func exists(dir int, name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}

// list returns the names in a directory.
func list(dir int) ([]string, error) {
	if _, err := unix.Seek(dir, 0, unix.SEEK_SET); err != nil {
		return nil, err
	}
	var names []string
	buffer := make([]byte, 1<<16)
	for {
		n, err := unix.ReadDirent(dir, buffer)
		if err != nil || n == 0 {
			return names, err
		}
		_, _, names = unix.ParseDirent(buffer[:n], -1, names)
	}
}

func readlink(dir int, name string, size uint64) (string, error) {
	// Some file systems return 0, and some a size that is too small.
	buffer := make([]byte, max(size+1, unix.PathMax))
	n, err := unix.Readlinkat(dir, name, buffer)
	if err != nil {
		return "", err
	}
	return string(buffer[:n]), nil
}

func times(st *unix.Statx_t) []unix.Timespec {
	return []unix.Timespec{{Sec: st.Atime.Sec, Nsec: int64(st.Atime.Nsec)}, {Sec: st.Mtime.Sec, Nsec: int64(st.Mtime.Nsec)}}
}

// chmod changes the mode of an entry and follows no symbolic link, which fchmodat(2) without a flag that is new does.
func chmod(dir int, name string, mode uint32) error {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode), unix.Close(fd))
}

// base returns the last name of a path.
func base(rel string) string { return rel[strings.LastIndexByte(rel, '/')+1:] }
