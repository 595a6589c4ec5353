// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"

	"github.com/coxswain-hpc/coxswain/internal/node/jail"
	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck/machine"
)

const (
	// outputsDir is in the jail, and everybody may write to it. healthOutputs is the directory in it for the output of
	// health-checker's tests.
	outputsDir    = "/opt/soperator-outputs"
	healthOutputs = "health_checker_cmd_stdout"
	// healthDir is where health-checker writes that output, in the jail. Only root may write to the directories above it: in place of a
	// path below outputsDir a user could make a link, which a program of root follows.
	healthDir = "/run/check-runner"
	// maxHealthOutput is how much of the output of a test is kept, in bytes.
	maxHealthOutput = 16 << 20
)

// makeHealthDir makes an empty directory for one run of health-checker, which only root can reach.
func makeHealthDir(m *machine.Machine) (string, error) {
	files := m.Files.WithoutLinks()
	for _, dir := range []string{path.Dir(healthDir), healthDir} {
		if err := files.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	dir := path.Join(healthDir, "health-"+m.Name+"."+strconv.Itoa(os.Getpid()))
	if err := files.RemoveAll(dir); err != nil {
		return "", err
	}
	return dir, files.Mkdir(dir, 0o700)
}

// keepHealthOutput moves what health-checker has written to where people look for it. No link there is followed.
func keepHealthOutput(m *machine.Machine, dir string) error {
	entries, err := readDir(m, dir)
	if err != nil {
		return err
	}
	outputs, err := m.Files.Sub(outputsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return m.Files.RemoveAll(dir) // a jail in which nobody looks
	}
	if err != nil {
		return err
	}
	defer func() { _ = outputs.Close() }()
	strict := outputs.WithoutLinks()
	var failures []error
	if err := strict.Mkdir(healthOutputs, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		failures = append(failures, err)
	}
	for _, entry := range entries {
		if entry.Type().IsRegular() && len(failures) == 0 {
			failures = append(failures, keepOutput(m, path.Join(dir, entry.Name()), strict, path.Join(healthOutputs, entry.Name())))
		}
	}
	return errors.Join(append(failures, m.Files.RemoveAll(dir))...)
}

// keepOutput copies one file into a place of the outputs, where it takes the place of whatever has its name.
func keepOutput(m *machine.Machine, from string, outputs *jail.Root, name string) error {
	in, err := m.Files.WithoutLinks().Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	if err := outputs.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out, err := outputs.Create(name, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, maxHealthOutput))
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("copying %s of the jail: %w", from, err)
	}
	return nil
}
