// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-slurm is a plugin of kubectl: "kubectl slurm" shows Slurm clusters and their workers, and works with them, with the
// rights of the caller.
package main

import (
	"context"
	"os"
	"os/signal"
	"os/user"
	"syscall"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/coxswain-hpc/coxswain/internal/cli"
)

// version is set by the linker.
var version = "unknown"

const description = `The Coxswain kubectl-slurm shows Slurm clusters on Kubernetes, and works with them.

It is a plugin of kubectl: with the program in a directory of PATH, "kubectl slurm" runs it. It talks only to the API server,
with your kubeconfig and your rights.`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	name := ""
	if account, err := user.Current(); err == nil {
		name = account.Username
	}
	code := cli.Run(ctx, cli.Program{
		Description: description,
		Version:     version,
		User:        name,
		Streams:     genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		Colour:      term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == "",
	}, os.Args[1:])
	stop()
	os.Exit(code)
}
