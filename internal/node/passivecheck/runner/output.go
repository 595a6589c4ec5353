// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/node/jail"
	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck"
	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck/machine"
)

// maxLog is how large the runner's own log may grow before it begins anew, in bytes.
const maxLog = 1 << 20

// openOutput makes the file for a check's output anew. Everybody may write to the directory, so that no link below it is followed.
func (r *Runner) openOutput(check passivecheck.Check) (*os.File, error) {
	outputs, err := openOutputs(r.Machine, r.OutputsDir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = outputs.Close() }()
	strict, name := outputs.WithoutLinks(), check.LogPath(r.Machine.Name, r.Machine.Context)
	if err := makeDirs(strict, path.Dir(name), 0o755); err != nil {
		return nil, err
	}
	if err := strict.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return strict.Create(name, 0o644)
}

// openOutputs opens the directory for outputs, and makes it when it is not there.
func openOutputs(m *machine.Machine, dir string) (*jail.Root, error) {
	outputs, err := m.Files.Sub(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeDirs(m.Files, dir, 0o755); err == nil {
			outputs, err = m.Files.Sub(dir)
		}
	}
	return outputs, err
}

func makeDirs(root *jail.Root, dir string, mode fs.FileMode) error {
	made := ""
	for part := range strings.SplitSeq(strings.Trim(path.Clean(dir), "/"), "/") {
		if part == "." || part == "" {
			continue
		}
		made = path.Join(made, part)
		if err := root.Mkdir(made, mode); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// OpenLog opens the runner's own log at its end. file is a path of the container: below the outputs of the jail, or anywhere else.
func OpenLog(m *machine.Machine, outputsDir, file string) (*os.File, error) {
	name, inside := strings.CutPrefix(path.Clean(file), path.Join(m.Jail, outputsDir)+"/")
	if !inside {
		return openLogOutside(m.Path(file))
	}
	outputs, err := openOutputs(m, outputsDir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = outputs.Close() }()
	strict := outputs.WithoutLinks()
	if err := makeDirs(strict, path.Dir(name), 0o755); err != nil {
		return nil, err
	}
	if log, err := strict.Append(name); err == nil {
		if info, err := log.Stat(); err == nil && info.Size() <= maxLog {
			return log, nil
		}
		if err := log.Close(); err != nil {
			return nil, err
		}
	}
	// It is not there, too large, or not ours.
	if err := strict.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	log, err := strict.Create(name, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return strict.Append(name) // another job's was faster
	}
	return log, err
}

func openLogOutside(file string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // people read logs
		return nil, fmt.Errorf("making the directory for the log: %w", err)
	}
	return os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644) //nolint:gosec // the administrator names the file
}
