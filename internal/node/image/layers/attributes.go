// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"archive/tar"
	"math"
	"strings"
	"time"
)

// attributePrefix begins the PAX records that have extended attributes.
const attributePrefix = "SCHILY.xattr."

// modeOf returns the permissions that a file gets. There are no set-id bits: all files belong to one owner, who could become root by none
// of them. The owner, to whom the user is mapped, can read everything, execute what anybody can, and write into directories.
func modeOf(header *tar.Header, k kind) uint16 {
	mode := uint16(header.Mode & 0o1777)
	switch {
	case k == symlink:
		return 0o777
	case k == directory:
		mode |= 0o700
	case mode&0o111 != 0:
		mode |= 0o500
	}
	return mode | 0o400
}

// timeOf returns the seconds since 1970 within what squashfs can have. sqfstar 4.5 takes no time before 1970, and wraps one after 2106.
func timeOf(t time.Time) uint32 {
	return uint32(min(max(t.Unix(), 0), math.MaxUint32))
}

// attributesOf returns the PAX records of the extended attributes that are kept: those of users.
//
//	dropped                                   because
//	security.*, trusted.*, system.*           they give rights: file capabilities, labels, ACLs of owners who are not there
//	user.overlay.*, user.fuseoverlayfs.*,     an overlay with "userxattr" would obey them: whiteouts, redirects
//	user.containers.*
//	those of symbolic links and pipes         Linux has no user.* there
func attributesOf(header *tar.Header, k kind) (map[string]string, error) {
	if k != directory && k != file {
		return nil, nil
	}
	var kept map[string]string
	size := 0
	for record, value := range header.PAXRecords {
		name, found := strings.CutPrefix(record, attributePrefix)
		if !found || !keptAttribute(name) {
			continue
		}
		if size += len(name) + len(value); size > maxAttributeBytes {
			return nil, &LimitError{"bytes of extended attributes", maxAttributeBytes}
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[record] = value
	}
	return kept, nil
}

func keptAttribute(name string) bool {
	rest, found := strings.CutPrefix(name, "user.")
	if !found || rest == "" || len(name) > 255 {
		return false
	}
	for _, prefix := range []string{"overlay.", "fuseoverlayfs.", "containers."} {
		if strings.HasPrefix(rest, prefix) {
			return false
		}
	}
	return true
}
