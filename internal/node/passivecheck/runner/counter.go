// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck"
)

// Dir is what the runner remembers until the worker's container ends: CounterFile, and which unavailable checks it has logged.
const Dir = "/run/check-runner"

// CounterFile has the number of internal errors, in Prometheus' text format.
const CounterFile = "internal_errors.prom"

// Count adds one to the number of internal errors, below the root of the container. Prologs of several jobs may run at once.
func Count(root string, counter passivecheck.Counter) error {
	dir := filepath.Join(root, Dir)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // whoever collects metrics reads it
		return fmt.Errorf("making %s: %w", Dir, err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // a constant path
	if err != nil {
		return fmt.Errorf("locking %s: %w", Dir, err)
	}
	defer func() { _ = lock.Close() }()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("locking %s: %w", Dir, err)
	}
	file := filepath.Join(dir, CounterFile)
	content, err := os.ReadFile(file) //nolint:gosec // a constant path
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading %s: %w", CounterFile, err)
	}
	counters := passivecheck.ParseCounters(string(content))
	counters[counter]++
	// A reader sees the old file or the new one.
	next := file + ".next"
	if err := os.WriteFile(next, []byte(counters.Text()), 0o644); err != nil { //nolint:gosec // as above
		return fmt.Errorf("writing %s: %w", CounterFile, err)
	}
	if err := os.Rename(next, file); err != nil {
		return fmt.Errorf("writing %s: %w", CounterFile, err)
	}
	return nil
}

// firstTime reports whether it is the first time that a check is not available.
func (r *Runner) firstTime(name string) (bool, error) {
	dir := r.Machine.Path(filepath.Join(Dir, "unavailable"))
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // names of checks are no secret
		return true, fmt.Errorf("remembering what is not available: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // a name without a slash
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("remembering what is not available: %w", err)
	}
	return true, file.Close()
}
