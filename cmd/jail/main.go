// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Command jail is what the images of login pods, workers and slurmctld do about the root file system that they share.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// command is one of the subcommands.
type command struct {
	name, about string
	run         func(ctx context.Context, args []string, output io.Writer) error
}

func commands() []command {
	return []command{
		{"populate", "Fills the jail with a root file system", runPopulate},
		{"mount", "Mounts the pod's own files over the jail, so that logins and jobs can have the jail as their root", runMount},
		{"home", "Makes a home directory in the jail for a user who has none", runHome},
		{"sessions", "Runs sshd such that ssh sessions have the jail as their root, as jobs do", runSessions},
		{"users", "Keeps the users of this pod in step with those of the jail", runUsers},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "jail:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, output io.Writer) error {
	if len(args) > 0 {
		for _, c := range commands() {
			if c.name == args[0] {
				return c.run(ctx, args[1:], output)
			}
		}
	}
	fmt.Fprint(output, "The Coxswain jail prepares the root file system that login pods and workers share.\n\nUsage: jail COMMAND [flags]; jail COMMAND --help lists the flags\n\n")
	for _, c := range commands() {
		fmt.Fprintf(output, "  %-8s %s.\n", c.name, c.about)
	}
	switch {
	case len(args) == 0:
		return errors.New("no command is given")
	case args[0] == "--help" || args[0] == "-h" || args[0] == "help":
		return flag.ErrHelp
	}
	return fmt.Errorf("there is no command %q", args[0])
}

// parse reads the flags of a subcommand. flag.ErrHelp means that help was asked for and written to output.
func parse(name string, args []string, output io.Writer, bind func(*flag.FlagSet)) error {
	fs := flag.NewFlagSet("jail "+name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	bind(fs)
	err := fs.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fs.SetOutput(output)
		fmt.Fprintf(output, "Usage: jail %s [flags]\n\n", name)
		fs.PrintDefaults()
	}
	if err == nil && fs.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: jail %s takes flags only, see --help", fs.Arg(0), name)
	}
	return err
}
