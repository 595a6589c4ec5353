// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck"
	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck/machine"
)

// memoryDir is where jobs have a tmpfs, in the jail.
const memoryDir = "/mnt/memory"

// jobDirPrefix begins the name of a job's directory there.
const jobDirPrefix = "job_"

// minLeftoverAge is how old the directory of a job has to be before it can be a leftover.
const minLeftoverAge = time.Minute

func jobDir(id int64) string { return memoryDir + "/" + jobDirPrefix + strconv.FormatInt(id, 10) }

// hasMemoryDir reports whether workers have the tmpfs.
func hasMemoryDir(m *machine.Machine) bool {
	info, err := m.Files.Lstat(memoryDir)
	return err == nil && info.IsDir()
}

// jobTmpfsRecreate makes an empty directory in the tmpfs, which is the user's alone. It fails, and the job does not start, where other
// users could have the directory instead.
func jobTmpfsRecreate(_ context.Context, m *machine.Machine) (passivecheck.Result, error) {
	switch {
	case m.Job == nil:
		return withoutJob()
	case !hasMemoryDir(m):
		return skipped("there is no %s", memoryDir)
	}
	if err := closeMemoryDir(m); err != nil {
		return failed("users may write to %s, and could take the directory of a job there: %v", memoryDir, err)
	}
	dir := jobDir(m.Job.ID)
	err := m.Files.RemoveAll(dir)
	if err == nil {
		err = m.Files.Mkdir(dir, 0o700)
	}
	if err == nil {
		err = m.Files.Chown(dir, m.Job.UID, m.Job.GID)
	}
	if err == nil {
		return passed("%s was made", dir)
	}
	if info, statErr := m.Files.Lstat(dir); !errors.Is(statErr, fs.ErrNotExist) && (statErr != nil || ofOthers(info, m.Job.UID)) {
		return failed("%s is not the user's alone: %v", dir, errors.Join(err, statErr))
	}
	// A job that could fill the tmpfs, or has made its own directory hard to remove, takes no node out.
	return passivecheck.Result{}, fmt.Errorf("making the directory of job %d: %w", m.Job.ID, err)
}

// closeMemoryDir lets only root make or move anything in the tmpfs. A kubelet mounts it so that everybody may.
func closeMemoryDir(m *machine.Machine) error {
	dir, err := m.Files.WithoutLinks().Open(memoryDir)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	info, err := dir.Stat()
	if err != nil {
		return fmt.Errorf("looking at it: %w", err)
	}
	if owner(info) != os.Geteuid() {
		if err := dir.Chown(os.Geteuid(), os.Getegid()); err != nil {
			return fmt.Errorf("making it root's: %w", err)
		}
	}
	const othersWrite = 0o022
	if info.Mode().Perm()&othersWrite == 0 {
		return nil
	}
	if err := dir.Chmod(info.Mode().Perm() &^ othersWrite); err != nil {
		return fmt.Errorf("closing it: %w", err)
	}
	return nil
}

// ofOthers reports whether others than root and a user may have what is at the place of a job's directory.
func ofOthers(info fs.FileInfo, uid int) bool {
	is := owner(info)
	return !info.IsDir() || info.Mode().Perm()&0o077 != 0 || is != uid && is != os.Geteuid()
}

// owner returns the user ID of the owner of a file, or -1.
func owner(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

// jobTmpfsDelete removes it.
func jobTmpfsDelete(_ context.Context, m *machine.Machine) (passivecheck.Result, error) {
	switch {
	case m.Job == nil:
		return withoutJob()
	case !hasMemoryDir(m):
		return skipped("there is no %s", memoryDir)
	}
	dir := jobDir(m.Job.ID)
	if err := m.Files.RemoveAll(dir); err != nil {
		return passivecheck.Result{}, fmt.Errorf("removing the directory of job %d: %w", m.Job.ID, err)
	}
	return passed("%s was removed", dir)
}

// jobTmpfsDeleteLeftover removes directories of jobs that slurmctld does not have here any more. slurmctld is asked only when there is
// an old directory whose job has no slurmstepd: such a job may be in its Prolog.
func jobTmpfsDeleteLeftover(ctx context.Context, m *machine.Machine) (passivecheck.Result, error) {
	if !hasMemoryDir(m) {
		return skipped("there is no %s", memoryDir)
	}
	entries, err := readDir(m, memoryDir)
	if err != nil {
		return passivecheck.Result{}, err
	}
	old := map[int64]bool{}
	running := m.StepJobs()
	for _, entry := range entries {
		digits, isJob := strings.CutPrefix(entry.Name(), jobDirPrefix)
		id, err := strconv.ParseInt(digits, 10, 64)
		if !isJob || err != nil || running[id] || m.Job != nil && m.Job.ID == id {
			continue
		}
		info, err := m.Files.Lstat(jobDir(id))
		if err != nil || m.Now.Sub(info.ModTime()) < minLeftoverAge {
			continue // it is gone, or too young
		}
		old[id] = true
	}
	if len(old) == 0 {
		return passed("there are no leftovers")
	}
	queued, err := m.QueuedJobs(ctx)
	if err != nil {
		return passivecheck.Result{}, err
	}
	maps.DeleteFunc(old, func(id int64, _ bool) bool { return queued[id] })
	var failures []error
	for id := range old {
		failures = append(failures, m.Files.RemoveAll(jobDir(id)))
	}
	if err := errors.Join(failures...); err != nil {
		return passivecheck.Result{}, fmt.Errorf("removing directories of jobs that have ended: %w", err)
	}
	return passed("%d directories were removed", len(old))
}

// readDir lists a directory of the jail.
func readDir(m *machine.Machine, dir string) ([]fs.DirEntry, error) {
	file, err := m.Files.Open(dir)
	if err != nil {
		return nil, err
	}
	entries, err := file.ReadDir(-1)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("listing %s of the jail: %w", dir, err)
	}
	return entries, nil
}

// removeIn removes entries of a directory of the jail and counts them. A directory that is not there is an empty one.
func removeIn(m *machine.Machine, dir string, which func(name string) bool) (int, error) {
	entries, err := readDir(m, dir)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	count, failures := 0, []error{err}
	for _, entry := range entries {
		if which(entry.Name()) {
			count++
			failures = append(failures, m.Files.RemoveAll(dir+"/"+entry.Name()))
		}
	}
	return count, errors.Join(failures...)
}
