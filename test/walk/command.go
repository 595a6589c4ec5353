// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Repository is the directory of the module github.com/coxswain-hpc/coxswain, in which programs, charts and images are.
type Repository string

// FindRepository searches from the working directory upwards.
func FindRepository() (Repository, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	for from := dir; ; from = filepath.Dir(from) {
		text, err := os.ReadFile(filepath.Join(from, "go.mod")) //nolint:gosec // the directories above the working one
		if err == nil && bytes.HasPrefix(text, []byte("module github.com/coxswain-hpc/coxswain\n")) {
			return Repository(from), nil
		}
		if from == filepath.Dir(from) {
			return "", fmt.Errorf("finding the repository: neither %s nor a directory above it is coxswain's", dir)
		}
	}
}

// Path returns the path of a file in the repository.
func (r Repository) Path(elements ...string) string {
	return filepath.Join(append([]string{string(r)}, elements...)...)
}

// run runs a program and returns its standard output. What it writes to standard error is shown, unless p is nil; the end
// of it is part of an error.
func (r Repository) run(ctx context.Context, p *Progress, name string, args ...string) (string, error) {
	var stdout bytes.Buffer
	stderr := &tail{limit: 4 << 10}
	show := []io.Writer{stderr}
	if p != nil {
		show = append(show, p.Lines())
	}
	err := r.execute(ctx, &stdout, io.MultiWriter(show...), name, args...)
	if err != nil {
		return "", fmt.Errorf("running %s %s: %w\n%s", name, strings.Join(args, " "), err, stderr)
	}
	return stdout.String(), nil
}

// show runs a program and shows all that it writes.
func (r Repository) show(ctx context.Context, p *Progress, name string, args ...string) error {
	stderr := &tail{limit: 4 << 10}
	err := r.execute(ctx, p.Lines(), io.MultiWriter(stderr, p.Lines()), name, args...)
	if err != nil {
		return fmt.Errorf("running %s %s: %w\n%s", name, strings.Join(args, " "), err, stderr)
	}
	return nil
}

func (r Repository) execute(ctx context.Context, stdout, stderr io.Writer, name string, args ...string) error {
	if strings.Contains(name, "/") {
		name = r.Path(name)
	}
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // programs of this repository, and make
	cmd.Dir, cmd.Stdout, cmd.Stderr = string(r), stdout, stderr
	// A program that is stopped gets the chance to clean up.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// tail keeps the end of what is written to it.
type tail struct {
	limit int
	bytes []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.bytes = append(t.bytes, b...)
	if over := len(t.bytes) - t.limit; over > 0 {
		t.bytes = t.bytes[over:]
	}
	return len(b), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.bytes)) }
