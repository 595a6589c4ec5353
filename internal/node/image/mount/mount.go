// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mount reads --container-mounts: what users want to see inside of a container. It does no input or output: the sources are looked
// at where the container starts.
//
//	SRC[:DST[:FLAG[+FLAG]…]][,…]
//
// No path of an entry holds a comma or a colon. Names of variables are replaced by Expand, after the entries are split: the value of a
// variable never becomes another entry or a flag.
package mount

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Kind is what an entry does.
type Kind string

// The kinds of entries.
const (
	// Bind shows a file or a directory of the node in the container.
	Bind Kind = "bind"
	// Tmpfs mounts an empty file system in memory.
	Tmpfs Kind = "tmpfs"
	// Umount detaches what is mounted at the target.
	Umount Kind = "umount"
)

// Mount is an entry.
type Mount struct {
	// Kind is what the entry does.
	Kind Kind
	// Source is a path of the node, absolute or relative to the job's working directory. Only a bind mount has one.
	Source string
	// Target is a path in the container, absolute or relative to its root directory.
	Target string
	// Flags has the default flags of the kind, and then those of the user. A later flag overrides an earlier one.
	Flags []string
}

// ErrEmpty is the error of an argument without text. Scripts look for its message.
var ErrEmpty = errors.New("--container-mounts: argument required")

// errSource is the error of a source that is neither a path nor a keyword. Scripts look for its message.
var errSource = errors.New(`mount source must be a relative path, an absolute path, "tmpfs" or "umount"`)

// MissingSourceError is the error of a bind mount whose absolute source the node does not have. Scripts look for its message.
type MissingSourceError struct {
	// Path is the source.
	Path string
}

// Error is part of error.
func (e *MissingSourceError) Error() string {
	return "--container-mounts: source path does not exist: " + e.Path
}

// defaultFlags returns the flags that stand before those of the user.
func defaultFlags(kind Kind) []string {
	switch kind {
	case Tmpfs:
		return []string{"x-create=dir"}
	case Umount:
		return []string{"x-detach"}
	default:
		return []string{"x-create=auto", "rbind"}
	}
}

// String returns a text from which Parse makes the same entry.
func (m Mount) String() string {
	source := string(m.Kind)
	if m.Kind == Bind {
		source = m.Source
	}
	text := source + ":" + m.Target
	if own := m.Flags[min(len(defaultFlags(m.Kind)), len(m.Flags)):]; len(own) > 0 {
		text += ":" + strings.Join(own, "+")
	}
	return text
}

// equal reports whether two entries do the same.
func (m Mount) equal(other Mount) bool {
	return m.Kind == other.Kind && m.Source == other.Source && m.Target == other.Target && slices.Equal(m.Flags, other.Flags)
}

// Parse reads the arguments of one or several --container-mounts. They add up in their order, and an entry that was there before is
// dropped. It checks all that can be checked without the values of variables.
func Parse(arguments ...string) ([]Mount, error) {
	var mounts []Mount
	for _, argument := range arguments {
		if argument == "" {
			return nil, ErrEmpty
		}
		for entry := range strings.SplitSeq(argument, ",") {
			m, err := parseEntry(entry)
			if err != nil {
				return nil, err
			}
			mounts = appendNew(mounts, m)
		}
	}
	return mounts, nil
}

// appendNew appends an entry that is not there yet.
func appendNew(mounts []Mount, m Mount) []Mount {
	if slices.ContainsFunc(mounts, m.equal) {
		return mounts
	}
	return append(mounts, m)
}

// parseEntry reads one entry.
func parseEntry(entry string) (Mount, error) {
	parts := strings.SplitN(entry, ":", 3)
	source := parts[0]
	target := source
	if len(parts) > 1 {
		target = parts[1]
	}
	if source == "" || target == "" || strings.ContainsRune(entry, 0) {
		return Mount{}, fmt.Errorf("--container-mounts: invalid format: %s", entry)
	}
	m := Mount{Kind: Bind, Source: source, Target: target}
	if keyword := Kind(source); keyword == Tmpfs || keyword == Umount {
		m.Kind, m.Source = keyword, ""
	}
	m.Flags = defaultFlags(m.Kind)
	if len(parts) == 3 && parts[2] != "" {
		m.Flags = append(m.Flags, strings.Split(parts[2], "+")...)
	}
	if err := m.check(); err != nil {
		return Mount{}, fmt.Errorf("could not add mount entry: %s:%s: %w", source, target, err)
	}
	return m, nil
}

// check returns what is wrong about an entry. What holds a variable is looked at again after it has been replaced.
func (m Mount) check() error {
	switch {
	case m.Kind == Bind && !beginsPath(m.Source):
		return errSource
	case m.Kind != Bind && !beginsPath(m.Target) && m.Target == string(m.Kind):
		return fmt.Errorf("%s needs a target: write %s:/DIRECTORY", m.Kind, m.Kind)
	case !beginsPath(m.Target):
		return errors.New("mount target must be a relative or an absolute path: let it begin with . or /")
	case !hasVariable(m.Target) && leavesRoot(m.Target):
		return errors.New("mount target leaves the container's root directory: write one below it")
	}
	for _, flag := range m.Flags[len(defaultFlags(m.Kind)):] {
		if err := checkFlag(m.Kind, flag); err != nil {
			return err
		}
	}
	return nil
}

// beginsPath reports whether a text is a path, or begins with a variable that may hold one.
func beginsPath(text string) bool {
	return text != "" && (text[0] == '/' || text[0] == '.' || text[0] == '$' && hasVariable(text))
}

// leavesRoot reports whether a path goes above the directory where it begins.
func leavesRoot(target string) bool {
	clean := path.Clean(strings.TrimLeft(target, "/"))
	return clean == ".." || strings.HasPrefix(clean, "../")
}
