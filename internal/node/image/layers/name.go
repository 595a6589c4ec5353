// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"errors"
	"path"
	"strings"
)

var (
	errLeavesRoot = errors.New("the name leaves the root of the image")
	errNul        = errors.New("the name has a NUL byte")
	errWhiteout   = errors.New("the whiteout hides no name")
)

const (
	whiteoutPrefix = ".wh."
	// whiteoutMeta begins names in which aufs keeps its own files.
	whiteoutMeta   = ".wh..wh."
	whiteoutOpaque = ".wh..wh..opq"
)

// clean returns a name relative to the root; that of the root itself is empty.
//
//	a name like         becomes      because
//	/etc/x, ./etc/x     etc/x        the root of the image is meant
//	a/../etc/x          etc/x        it stays inside
//	../x, /../x, a/../../x  refused  it leaves the root
func (l Limits) clean(name string) (string, error) {
	if strings.IndexByte(name, 0) >= 0 {
		return "", errNul
	}
	rel := path.Clean(strings.TrimLeft(name, "/"))
	switch {
	case rel == ".":
		return "", nil
	case rel == "..", strings.HasPrefix(rel, "../"):
		return "", errLeavesRoot
	}
	if len(rel) > l.PathBytes {
		return "", &LimitError{"bytes in a name", int64(l.PathBytes)}
	}
	depth := 0
	for part := range strings.SplitSeq(rel, "/") {
		if depth++; depth > l.Depth {
			return "", &LimitError{"components in a name", int64(l.Depth)}
		}
		if len(part) > l.NameBytes {
			return "", &LimitError{"bytes in one component of a name", int64(l.NameBytes)}
		}
	}
	return rel, nil
}

// whiteout is what an entry's name means for lower layers.
type whiteout int

const (
	notWhiteout whiteout = iota
	// hidesName: the name without the prefix is hidden.
	hidesName
	// hidesChildren: all that lower layers have in the directory is hidden.
	hidesChildren
	// ignored: the file belongs to aufs.
	ignored
)

// readWhiteout returns what a clean name means, and the name that it is about.
func readWhiteout(rel string) (whiteout, string, error) {
	dir, base := path.Split(rel)
	if strings.HasPrefix(dir, whiteoutPrefix) || strings.Contains(dir, "/"+whiteoutPrefix) {
		return ignored, "", nil
	}
	hidden, found := strings.CutPrefix(base, whiteoutPrefix)
	switch {
	case !found:
		return notWhiteout, rel, nil
	case base == whiteoutOpaque:
		return hidesChildren, strings.TrimSuffix(dir, "/"), nil
	case strings.HasPrefix(base, whiteoutMeta):
		return ignored, "", nil
	case hidden == "", hidden == ".", hidden == "..":
		return notWhiteout, "", errWhiteout
	}
	return hidesName, dir + hidden, nil
}

// inDev reports whether a clean name is below /dev, which is another file system in every container.
func inDev(rel string) bool { return strings.HasPrefix(rel, "dev/") }
