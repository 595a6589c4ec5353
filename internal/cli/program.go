// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli is what kubectl-slurm does: it reads the objects of a cluster with the rights of the caller, and prints what is in them.
//
// Functions without a client turn objects into what is printed, such as Tree; other files print it, and the commands wire both.
package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Program is what the main function passes on.
type Program struct {
	// Description is the beginning of --help.
	Description string
	// Version is the version of the program.
	Version string
	// Streams are the standard input and outputs.
	Streams genericiooptions.IOStreams
	// Colour is true if output may be coloured.
	Colour bool
	// User is the name of the caller's account on this machine, for whom a token is made when no user is named; empty when it is not known.
	User string
	// Now is the clock, by default time.Now.
	Now func() time.Time
}

// Exit codes, as in --help.
const (
	exitOK    = 0
	exitError = 1
	exitWrong = 2
)

// exitCodes is the end of --help.
const exitCodes = `

Exit codes: 0 all is well, 1 an error, 2 something is not ready, or wrong. "diff" ends with 1 when something would change, and with 2
after an error, as kubectl diff does. "ssh", "exec" and programs of Slurm end with the code of the program.`

// exit ends the program with a code. It is an error so that commands can return it; err, which may be nil, is printed.
type exit struct {
	code int
	err  error
}

func (e exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e exit) Unwrap() error { return e.err }

// Run runs the command that args name, and returns the exit code of the program. It prints errors.
func Run(ctx context.Context, p Program, args []string) int {
	if p.Now == nil {
		p.Now = time.Now
	}
	root := newRoot(ctx, p)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var end exit
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &end):
		if end.err != nil {
			fmt.Fprintln(p.Streams.ErrOut, "Error:", harmless(end.err.Error()))
		}
		return end.code
	default:
		fmt.Fprintln(p.Streams.ErrOut, "Error:", harmless(err.Error()))
		return exitError
	}
}

// session is what commands share.
type session struct {
	Program
	flags *genericclioptions.ConfigFlags
	// user and login are --user and --login: as whom, and in which LoginSet or login pod, a program runs.
	user, login string
}

func newRoot(ctx context.Context, p Program) *cobra.Command {
	s := &session{Program: p, flags: genericclioptions.NewConfigFlags(true)}
	s.flags.CacheDir = nil     // nothing is asked of discovery
	s.flags.AuthInfoName = nil // --user is a user of Slurm here
	root := &cobra.Command{
		Use:           "kubectl-slurm",
		Short:         "Show Slurm clusters on Kubernetes, and work with them",
		Long:          p.Description + exitCodes,
		Version:       p.Version,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl slurm"},
		SilenceErrors: true,
		SilenceUsage:  true,
		// Flags before the name of a program are ours, those behind it are the program's.
		TraverseChildren:  true,
		PersistentPreRunE: checkRemoteFlags,
		Args:              cobra.NoArgs,
		RunE:              func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.SetIn(p.Streams.In)
	root.SetOut(p.Streams.Out)
	root.SetErr(p.Streams.ErrOut)
	s.flags.AddFlags(root.PersistentFlags())
	root.PersistentFlags().StringVar(&s.user, "user", "", "User of the login pod, for ssh, exec, token and programs of Slurm.")
	root.PersistentFlags().StringVar(&s.login, "login", "", "LoginSet or login pod, for ssh, exec, token, top, jobs and programs of Slurm.")
	_ = root.RegisterFlagCompletionFunc("login", s.complete(ctx, maxArguments, loginSetNames()))
	root.AddCommand(s.statusCommand(ctx), s.explainCommand(ctx), s.planCommand(ctx), s.logsCommand(ctx), s.lintCommand(ctx))
	root.AddCommand(s.tokenCommand(ctx), s.renderCommand(ctx), s.diffCommand(ctx), s.bundleCommand(ctx), s.topCommand(ctx), s.jobsCommand(ctx),
		s.backupCommand(ctx), s.restoreCommand(ctx))
	root.AddCommand(s.cordonCommands(ctx)...)
	root.AddCommand(s.remoteCommands(ctx)...)
	return root
}
