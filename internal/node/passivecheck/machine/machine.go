// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package machine is the node on which checks run: its files and those of the jail, its GPUs, and what slurmctld reports about it. What
// costs something is found out once, when it is first asked for.
package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/node/jail"
	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck"
)

// defaultPath is the search path: slurmd gives its scripts none.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// programTimeout is how long a program of the system may take to answer. slurmd waits for a script for PrologEpilogTimeout.
const programTimeout = 30 * time.Second

// waitTimeout is how long the output of a program is waited for after its end, which a child of it may hold open.
const waitTimeout = time.Second

// Options are what is known of a node from the start.
type Options struct {
	// Root is where the files of the worker's container are, and Jail the path of the jail below it.
	Root, Jail string
	// Environment is the environment of the Prolog, Epilog or HealthCheckProgram.
	Environment map[string]string
	Context     passivecheck.Context
	// Job is nil where the context has none.
	Job *passivecheck.Job
	// Now is the time at which the checks began.
	Now time.Time
}

// Machine is a node. It is used by one goroutine.
type Machine struct {
	Options
	// Files are the files of the jail, or of the container where there is no jail. Users can change what is there.
	Files *jail.Root
	// Name is the name of the node in Slurm.
	Name string

	jailed   bool
	node     answer[passivecheck.Node]
	platform answer[passivecheck.Platform]
	memory   answer[int64]
}

// answer is what a question brought, which is asked once.
type answer[T any] struct {
	asked bool
	value T
	err   error
}

func (a *answer[T]) get(ask func() (T, error)) (T, error) {
	if !a.asked {
		a.asked = true
		a.value, a.err = ask()
	}
	return a.value, a.err
}

// Open opens the files of a node.
func Open(o Options) (*Machine, error) {
	m := &Machine{Options: o, Name: o.Environment["SLURMD_NODENAME"]}
	if m.Name == "" {
		name, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("asking for the name of the host: %w", err)
		}
		m.Name, _, _ = strings.Cut(name, ".")
	}
	root := filepath.Join(o.Root, o.Jail)
	switch info, err := os.Stat(root); {
	case err == nil && info.IsDir():
		m.jailed = true
	case err == nil || errors.Is(err, fs.ErrNotExist):
		root = o.Root
	default:
		return nil, fmt.Errorf("looking for the jail: %w", err)
	}
	var err error
	m.Files, err = jail.Open(root)
	return m, err
}

// Close closes the files.
func (m *Machine) Close() error { return m.Files.Close() }

// Path is the path of a file of the container.
func (m *Machine) Path(path string) string { return filepath.Join(m.Root, path) }

// JailRoot returns the directory that is the root of the jail, and of jobs; empty without a jail.
func (m *Machine) JailRoot() string {
	if !m.jailed {
		return ""
	}
	return filepath.Join(m.Root, m.Jail)
}

// Environ returns the environment for programs, with a search path.
func (m *Machine) Environ() []string {
	environ := make([]string, 0, len(m.Environment)+1)
	for name, value := range m.Environment {
		environ = append(environ, name+"="+value)
	}
	if m.Environment["PATH"] == "" {
		environ = append(environ, "PATH="+defaultPath)
	}
	return environ
}

// Program finds a program of the container; empty when it is not installed.
func (m *Machine) Program(name string) string {
	path := m.Environment["PATH"]
	if path == "" {
		path = defaultPath
	}
	for _, dir := range filepath.SplitList(path) {
		candidate := filepath.Join(dir, name)
		if info, err := os.Stat(candidate); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return candidate
		}
	}
	return ""
}

// Output runs a program and returns its standard output.
func (m *Machine) Output(ctx context.Context, command *exec.Cmd) (string, error) {
	command.Env, command.WaitDelay = m.Environ(), waitTimeout
	var stdout, stderr strings.Builder
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	if err == nil {
		return stdout.String(), nil
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("it did not answer in time: %w", ctx.Err())
	}
	said := strings.Join(strings.Fields(stderr.String()+" "+stdout.String()), " ")
	return stdout.String(), fmt.Errorf("running %s: %w: %.300s", filepath.Base(command.Path), err, said)
}

// run runs a program of the container that has to be installed.
func (m *Machine) run(ctx context.Context, name string, args ...string) (string, error) {
	path := m.Program(name)
	if path == "" {
		return "", fmt.Errorf("running %s: %w", name, exec.ErrNotFound)
	}
	ctx, cancel := context.WithTimeout(ctx, programTimeout)
	defer cancel()
	return m.Output(ctx, exec.CommandContext(ctx, path, args...)) //nolint:gosec // programs of the image, without a shell
}
