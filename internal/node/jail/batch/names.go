// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// mark is in the names of files on their way.
	mark = "-sconfigcontroller-"
	// oldSuffix ends the second name of an old file.
	oldSuffix = "o"
	// longest keeps names below the 255 bytes that file systems take.
	longest = 200
)

// temporary returns the name of the n-th file of a batch while it is being written. The time is part of it.
func temporary(name string, stamp time.Time, n int) string {
	dir, base := path.Split(name)
	return dir + base[:min(len(base), longest)] + mark + strconv.FormatInt(stamp.UnixNano(), 36) + "-" + strconv.Itoa(n)
}

// stampOf returns the time in such a name, and whether it is one.
func stampOf(name string) (time.Time, bool) {
	i := strings.LastIndex(name, mark)
	if i < 0 {
		return time.Time{}, false
	}
	stamp, n, _ := strings.Cut(name[i+len(mark):], "-")
	nanos, err := strconv.ParseInt(stamp, 36, 64)
	if _, bad := strconv.ParseUint(strings.TrimSuffix(n, oldSuffix), 10, 32); err != nil || bad != nil {
		return time.Time{}, false
	}
	return time.Unix(0, nanos), true
}

// ModeOf returns the file mode of permissions as chmod(2) takes them.
func ModeOf(bits uint32) fs.FileMode {
	mode := fs.FileMode(bits & 0o777)
	for bit, as := range map[uint32]fs.FileMode{unix.S_ISUID: fs.ModeSetuid, unix.S_ISGID: fs.ModeSetgid, unix.S_ISVTX: fs.ModeSticky} {
		if bits&bit != 0 {
			mode |= as
		}
	}
	return mode
}

// onTheirWay finds in a text what makes names those of files on their way.
var onTheirWay = regexp.MustCompile(regexp.QuoteMeta(mark) + "[0-9a-z]+-[0-9]+" + oldSuffix + "?")

// plain is an error with the final names of files. With the time in them, each try would have another message.
type plain struct{ error }

// Error is part of error.
func (p plain) Error() string { return onTheirWay.ReplaceAllString(p.error.Error(), "") }

// Unwrap returns what errors.Is looks at.
func (p plain) Unwrap() error { return p.error }

// explain puts what to do about it before the kernel's error.
func explain(err error) error {
	if err == nil {
		return nil
	}
	err = plain{err}
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fmt.Errorf("the file system of the jail is full: remove files or make it larger: %w", err)
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("the jail is mounted read-only: mount it for writing: %w", err)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return fmt.Errorf("the user of sconfigcontroller may not write there: give it the directory, or set runAsUid and runAsGid: %w", err)
	}
	return err
}
