// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
)

// kubectl runs the cluster's own kubectl. Only a leading --name is ours, the
// rest is kubectl's.
func kubectl(ctx context.Context, args []string) error {
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
	cmd, err := c.Kubectl(ctx, rest)
	if err != nil {
		return err
	}
	return attach(cmd)
}

// shell runs a command in the namespaces of a node.
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
	cmd, err := c.Shell(ctx, f.Arg(0), f.Args()[1:])
	if err != nil {
		return err
	}
	return attach(cmd)
}

// attach runs a command in the foreground and passes its exit code on.
func attach(cmd *exec.Cmd) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return &exitError{code: exit.ExitCode()}
	}
	return err
}
