// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck"
	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck/machine"
)

// enrootConfig is enroot's configuration, in the jail.
const enrootConfig = "/etc/enroot/enroot.conf"

// maxEnrootConfig is how much of it is read, in bytes.
const maxEnrootConfig = 1 << 20

// cleanupEnroot removes the containers that pyxis has made for the job.
func cleanupEnroot(_ context.Context, m *machine.Machine) (passivecheck.Result, error) {
	if m.Job == nil {
		return withoutJob()
	}
	file, err := m.Files.Open(enrootConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return notInstalled("enroot")
	}
	if err != nil {
		return passivecheck.Result{}, err
	}
	content, err := io.ReadAll(io.LimitReader(file, maxEnrootConfig))
	if err := errors.Join(err, file.Close()); err != nil {
		return passivecheck.Result{}, fmt.Errorf("reading %s of the jail: %w", enrootConfig, err)
	}
	dir, err := enrootDataPath(string(content), m.Job.UID)
	if err != nil {
		return passivecheck.Result{}, err
	}
	if dir == "" {
		return skipped("%s has no ENROOT_DATA_PATH, so containers are in the user's home", enrootConfig)
	}
	prefix := "pyxis_" + strconv.FormatInt(m.Job.ID, 10)
	count, err := removeIn(m, dir, func(name string) bool {
		rest, found := strings.CutPrefix(name, prefix)
		// Job 12 has not made what job 123 has.
		return found && (rest == "" || rest[0] < '0' || rest[0] > '9')
	})
	if err != nil {
		return passivecheck.Result{}, fmt.Errorf("removing containers of job %d: %w", m.Job.ID, err)
	}
	return passed("%d containers were removed", count)
}

// enrootDataPath returns the directory with the containers of a user, as enroot.conf names it; empty when it does not. enroot has a shell
// expand it: what stands for the user's id is known here, and nothing else is evaluated.
func enrootDataPath(config string, uid int) (string, error) {
	dir := ""
	for line := range strings.Lines(config) {
		fields := strings.SplitN(strings.TrimSpace(strings.ReplaceAll(line, "\t", " ")), " ", 2)
		if fields[0] == "ENROOT_DATA_PATH" && len(fields) == 2 {
			dir = strings.Trim(strings.TrimSpace(fields[1]), `"`)
		}
	}
	id := strconv.Itoa(uid)
	dir = strings.NewReplacer("$(id -u)", id, "${UID}", id, "$UID", id, "${EUID}", id).Replace(dir)
	switch {
	case dir == "":
		return "", nil
	case strings.Contains(dir, "$") || !path.IsAbs(dir):
		return "", fmt.Errorf("reading %s of the jail: ENROOT_DATA_PATH is %q, and only an absolute path with the user's id in it is known", enrootConfig, dir)
	}
	return dir, nil
}

// dcgmDir is where dcgm-exporter looks which job a GPU has, with one file for each GPU. It is the host's, mounted into the worker.
const dcgmDir = "/var/run/nebius/slurm"

// mapJobDCGM writes the id of the job into the file of each of its GPUs.
func mapJobDCGM(_ context.Context, m *machine.Machine) (passivecheck.Result, error) {
	switch {
	case m.Job == nil:
		return withoutJob()
	case len(m.Job.GPUs) == 0:
		return skipped("the job has no GPUs")
	}
	err := os.MkdirAll(m.Path(dcgmDir), 0o755) //nolint:gosec // dcgm-exporter reads it as another user
	failures := []error{err}
	for _, gpu := range m.Job.GPUs {
		file := m.Path(path.Join(dcgmDir, strconv.Itoa(gpu)))
		failures = append(failures, os.WriteFile(file, []byte(strconv.FormatInt(m.Job.ID, 10)), 0o644)) //nolint:gosec // as above
	}
	if err := errors.Join(failures...); err != nil {
		return passivecheck.Result{}, fmt.Errorf("writing the job of GPUs for DCGM: %w", err)
	}
	return passed("%d GPUs have job %d", len(m.Job.GPUs), m.Job.ID)
}

// unmapJobDCGM removes the files of the job's GPUs that still have this job.
func unmapJobDCGM(_ context.Context, m *machine.Machine) (passivecheck.Result, error) {
	switch {
	case m.Job == nil:
		return withoutJob()
	case len(m.Job.GPUs) == 0:
		return skipped("the job has no GPUs")
	}
	var failures []error
	count := 0
	for _, gpu := range m.Job.GPUs {
		file := m.Path(path.Join(dcgmDir, strconv.Itoa(gpu)))
		content, err := os.ReadFile(file) //nolint:gosec // a constant directory and a number
		if err == nil && strings.TrimSpace(string(content)) == strconv.FormatInt(m.Job.ID, 10) {
			count++
			err = os.Remove(file)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			failures = append(failures, err)
		}
	}
	if err := errors.Join(failures...); err != nil {
		return passivecheck.Result{}, fmt.Errorf("removing the job of GPUs for DCGM: %w", err)
	}
	return passed("%d GPUs have no job any more", count)
}
