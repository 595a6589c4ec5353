// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck"
)

// maxDetails is how much of what a command writes to descriptor 3 is read, in bytes.
const maxDetails = 4096

// Exit codes of bash for a command that it cannot run.
const (
	notExecutable = 126
	notFound      = 127
)

// command runs a user's check by bash. Its output goes to the file, and what it writes to descriptor 3 are the details.
func (r *Runner) command(ctx context.Context, check passivecheck.Check, output *os.File) (passivecheck.Result, error) {
	environ, err := r.environ(ctx, check)
	if err != nil {
		return passivecheck.Result{}, err
	}
	fd, err := unix.MemfdCreate("details", unix.MFD_CLOEXEC)
	if err != nil {
		return passivecheck.Result{}, fmt.Errorf("making a file for details: %w", err)
	}
	said := os.NewFile(uintptr(fd), "details")
	defer func() { _ = said.Close() }()

	bash := exec.CommandContext(ctx, "/bin/bash", "-c", check.Command) //nolint:gosec // to run the administrator's command is what this is for
	bash.Env, bash.ExtraFiles = environ, []*os.File{said}
	// Files, and no pipes: a process that the command leaves behind holds up nothing.
	if output != nil {
		bash.Stdout, bash.Stderr = output, output
	}
	bash.Dir = r.ConfigDir
	if root := r.Machine.JailRoot(); root != "" && check.RunInJail {
		bash.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		if info, err := r.Machine.Files.Lstat(r.ConfigDir); err != nil || !info.IsDir() {
			bash.Dir = "/"
		}
	}
	err = bash.Run()
	details := make([]byte, maxDetails)
	n, readErr := said.ReadAt(details, 0)
	if readErr != nil && !errors.Is(readErr, io.EOF) {
		return passivecheck.Result{}, errors.Join(err, fmt.Errorf("reading the details: %w", readErr))
	}
	result := passivecheck.Result{Details: strings.Join(strings.Fields(string(bytes.ToValidUTF8(details[:n], nil))), " ")}
	if err == nil {
		return result, nil
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() == notExecutable || exit.ExitCode() == notFound {
		return passivecheck.Result{}, fmt.Errorf("running %q: %w", check.Command, err)
	}
	result.State = passivecheck.Failed
	if result.Details == "" {
		result.Details = exit.String()
	}
	return result, nil
}

// environ returns the environment of a command, with what it needs to know.
func (r *Runner) environ(ctx context.Context, check passivecheck.Check) ([]string, error) {
	out := append(r.Machine.Environ(), "CHECKS_CONTEXT="+string(r.Machine.Context))
	for _, name := range check.NeedEnv {
		value, err := r.value(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("computing %s: %w", name, err)
		}
		out = append(out, name+"="+value)
	}
	return out, nil
}

func (r *Runner) value(ctx context.Context, name string) (string, error) {
	switch name {
	case passivecheck.EnvPlatformTag, passivecheck.EnvPlatformTags:
		platform, err := r.Machine.Platform(ctx)
		if name == passivecheck.EnvPlatformTag {
			return platform.Tag(), err
		}
		return strings.Join(platform.Tags(), ","), err
	case passivecheck.EnvJobAllocMemory:
		memory, err := r.Machine.JobMemory(ctx)
		return strconv.FormatInt(memory, 10), err
	}
	node, err := r.Machine.Node(ctx)
	if err != nil {
		return "", err
	}
	switch name {
	case passivecheck.EnvNodeStateFlags:
		return strings.Join(node.States[1:], ","), nil
	case passivecheck.EnvNodeReason:
		return node.Reason, nil
	case passivecheck.EnvNodeComment:
		return node.Comment, nil
	default: // CHECKS_NODE_REAL_MEM_BYTES, as Parse knows no other
		return strconv.FormatInt(node.RealMemory*passivecheck.Mebibyte, 10), nil
	}
}
