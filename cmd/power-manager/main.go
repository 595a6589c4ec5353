// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Command power-manager changes which ephemeral nodes of a SlurmCluster are to run, for a program that Slurm's power saving calls:
// it adds nodes to spec.activeNodes of NodeSetPowerStates, removes them, or waits until that has been done.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/powerstate/powerrequest"
)

// namespaceFile is where a pod finds the namespace of its service account.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr, newClient)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		slog.New(slog.NewJSONHandler(os.Stderr, nil)).Error(err.Error())
		os.Exit(1)
	}
}

// newClient reaches the API server by the service account of the pod, or by the file that KUBECONFIG names.
func newClient() (client.Client, error) {
	rest, err := config.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("reading how to reach the API server: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := nebiusv1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("making a scheme: %w", err)
	}
	return client.New(rest, client.Options{Scheme: scheme})
}

// options are the flags of the command line.
type options struct {
	nodes, namespace string
	timeout          time.Duration
}

const usage = `The Coxswain power-manager sets which nodes of ephemeral NodeSets should run.

Usage: power-manager COMMAND -nodes HOSTLIST [flags]

  resume        The nodes should run.
  suspend       The nodes should not run.
  wait-added    Waits until all of the nodes are on the list of nodes that should run.
  wait-removed  Waits until none of the nodes is on that list.

Nodes of NodeSets without ephemeral nodes are skipped.

`

// run is one command.
func run(ctx context.Context, args []string, output io.Writer, connect func() (client.Client, error)) error {
	command, o, err := parse(args, output)
	if err != nil {
		return err
	}
	if o.namespace == "" {
		if o.namespace, err = ownNamespace(namespaceFile); err != nil {
			return err
		}
	}
	api, err := connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	log := slog.New(slog.NewJSONHandler(output, nil)).With("command", command)
	nodes, err := powerrequest.Find(ctx, powerrequest.Nodes{Client: api, Namespace: o.namespace, Log: log, Every: 2 * time.Second}, o.nodes)
	if err != nil {
		return err
	}
	switch command {
	case "resume":
		return nodes.Change(ctx, powerrequest.Resume)
	case "suspend":
		return nodes.Change(ctx, powerrequest.Suspend)
	case "wait-added":
		return nodes.Wait(ctx, powerrequest.Resume)
	default: // parse knows no other
		return nodes.Wait(ctx, powerrequest.Suspend)
	}
}

// parse reads the command line.
func parse(args []string, output io.Writer) (command string, o options, err error) {
	if len(args) == 0 {
		fmt.Fprint(output, usage)
		return "", o, errors.New("no command is given")
	}
	fs := flag.NewFlagSet("power-manager "+args[0], flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.nodes, "nodes", "", "the nodes, as a host list: worker-[0-3,7]")
	fs.StringVar(&o.namespace, "namespace", "", "the namespace of the SlurmCluster (default: that of the pod)")
	fs.DurationVar(&o.timeout, "timeout", 30*time.Second, "how long to try or to wait")
	switch args[0] {
	case "resume", "suspend", "wait-added", "wait-removed":
		err = fs.Parse(args[1:])
	case "help", "-h", "-help", "--help":
		err = flag.ErrHelp
	default:
		return "", o, fmt.Errorf("there is no command %q, see --help", args[0])
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(output, usage)
		fs.SetOutput(output)
		fs.PrintDefaults()
		return "", o, err
	case err != nil:
		return "", o, err
	case fs.NArg() > 0:
		return "", o, fmt.Errorf("unexpected argument %q, see --help", fs.Arg(0))
	case o.nodes == "":
		return "", o, errors.New("-nodes is missing")
	}
	return args[0], o, nil
}

// ownNamespace is the namespace of the pod.
func ownNamespace(file string) (string, error) {
	content, err := os.ReadFile(file) //nolint:gosec // a constant path
	if err != nil {
		return "", fmt.Errorf("reading the namespace of the pod, which -namespace can name instead: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}
