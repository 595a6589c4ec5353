// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/coxswain-hpc/coxswain/dev/internal/cluster"
)

// kubectl becomes the cluster's own kubectl. Only a leading --name is ours, the
// rest is kubectl's.
func kubectl(_ context.Context, args []string) error {
	f := newFlags("kubectl", "[ARGUMENT...]")
	var rest []string
	if len(args) >= 2 && (args[0] == "--name" || args[0] == "-name") {
		args, rest = args[:2], args[2:]
	} else {
		args, rest = nil, args
	}
	if err := f.parse(args, 0); err != nil {
		return err
	}
	c, err := f.open()
	if err != nil {
		return err
	}
	command, err := c.Kubectl(rest)
	if err != nil {
		return err
	}
	return become(command)
}

// shell becomes a command in the namespaces of a node.
func shell(ctx context.Context, args []string) error {
	f := newFlags("shell", "NODE [COMMAND...]")
	if err := f.parse(args, -1); err != nil {
		return err
	}
	if f.NArg() == 0 {
		f.Usage()
		return errUsage
	}
	c, err := f.open()
	if err != nil {
		return err
	}
	command, err := c.Shell(ctx, f.Arg(0), f.Args()[1:])
	if err != nil {
		return err
	}
	return become(command)
}

// become replaces this process, so that signals, the terminal and the exit
// code are the command's own.
func become(c cluster.Command) error {
	path, err := exec.LookPath(c.Args[0])
	if err != nil {
		return fmt.Errorf("finding %s: %w", c.Args[0], err)
	}
	if err := syscall.Exec(path, c.Args, append(os.Environ(), c.Env...)); err != nil {
		return fmt.Errorf("running %s: %w", path, err)
	}
	return nil
}
