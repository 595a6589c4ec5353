// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Command localkube runs Kubernetes on this machine, built from Go modules and
// Debian packages: a control plane as processes of the host and nodes in
// namespaces. See README.md of this module.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/coxswain-hpc/coxswain/dev/internal/cluster"
	"github.com/coxswain-hpc/coxswain/dev/internal/node"
)

const usage = `localkube runs Kubernetes on this machine.

  localkube up [--nodes N | --control-plane-only]   make a cluster, or repair it
  localkube up --node-names NAME,...                with nodes of these names
  localkube down [--all] [--purge]                  end it and undo all changes
  localkube status [--json]                         show what runs
  localkube load IMAGE.tar...                       import images into all nodes
  localkube kubeconfig [--raw]                      print the kubeconfig's path
  localkube logs [-f] [-n LINES] [COMPONENT]        print a log, or list all
  localkube kubectl [ARGUMENT...]                   run kubectl on the cluster
  localkube shell NODE [COMMAND...]                 run a command inside a node
  localkube build [--kwok]                          build the programs only

Every command takes --name NAME (default "coxswain", or $LOCALKUBE_NAME) to
choose among clusters. "localkube COMMAND --help" tells more.`

// Exit codes.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitInterrupted = 130
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == cluster.NodeInitCommand {
		log.Fatal(node.Init(context.Background(), os.Args[2]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	if len(args) == 0 || args[0] == "help" || args[0] == "--help" || args[0] == "-h" {
		fmt.Println(usage)
		return 0
	}
	// Debian's users have no sbin in their PATH, where ip and nft are.
	if err := os.Setenv("PATH", os.Getenv("PATH")+":/usr/local/sbin:/usr/sbin:/sbin"); err != nil {
		fmt.Fprintln(os.Stderr, "localkube:", err)
		return exitFailed
	}
	command, ok := commands()[args[0]]
	if !ok {
		fmt.Fprintf(os.Stderr, "localkube: unknown command %q\n\n%s\n", args[0], usage)
		return exitUsage
	}
	err := command(ctx, args[1:])
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		return exitUsage
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "localkube: interrupted; \"localkube up\" goes on from here, \"localkube down\" cleans up")
		return exitInterrupted
	case errors.Is(err, cluster.ErrNotFound):
		fmt.Fprintln(os.Stderr, "localkube:", err)
		return exitNotFound
	}
	fmt.Fprintln(os.Stderr, "localkube:", err)
	return exitFailed
}

// errUsage is returned when the flag package has printed the mistake already.
var errUsage = errors.New("usage")
