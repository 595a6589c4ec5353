// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// importing begins the names of directories of imports: .import-<lock>@<host>-<random>.
const importing = ".import-"

// patience is how long the directory of another host's import stays. A mount of NFS with local_lock=flock does not show the locks of other
// hosts, so that nobody here can see that it no longer runs.
const patience = 24 * time.Hour

// host returns the name of this host: in a pod that of the pod.
func host() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

// sweep removes what imports have left that no longer run: those of this host whose locks are free, or held by the caller, and old ones of
// other hosts. An import needs none of it gone, so that errors do not matter.
func (s *Store) sweep(held string) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		text, ours := strings.CutPrefix(entry.Name(), importing)
		lock, rest, _ := strings.Cut(text, "@")
		if !ours || lock == "" {
			continue
		}
		if by := rest[:max(0, strings.LastIndexByte(rest, '-'))]; by != host() && !isOlder(entry, patience) {
			continue
		}
		release := func() {}
		if lock != held {
			if release, err = s.tryLock(lock); release == nil || err != nil {
				continue
			}
		}
		_ = os.RemoveAll(filepath.Join(s.Dir, entry.Name()))
		release()
	}
}

func isOlder(entry os.DirEntry, age time.Duration) bool {
	status, err := entry.Info()
	return err == nil && time.Since(status.ModTime()) > age
}
