// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Command container runs steps of jobs in containers.
//
//	container serve   hands out images to the containers of a node; root in the pod of slurmd starts it
//	container step    makes the container of a step; the plugin of slurmstepd starts it, as the user of the job
//	container sleep   waits until its input ends; serve starts it to hold a user namespace
//	container squashfuse UID GID [GROUP…]
//	                  shows a user an image that is a file of theirs; serve starts it
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

	"github.com/coxswain-hpc/coxswain/internal/node/container"
	"github.com/coxswain-hpc/coxswain/internal/node/container/step"
	"github.com/coxswain-hpc/coxswain/internal/node/image/registry"
	"github.com/coxswain-hpc/coxswain/internal/node/image/registry/credentials"
	"github.com/coxswain-hpc/coxswain/internal/node/image/service"
	"github.com/coxswain-hpc/coxswain/internal/node/image/squash"
	"github.com/coxswain-hpc/coxswain/internal/node/image/store"
)

// socket is where steps ask for images, in the pod and in the jail.
const socket = "/run/coxswain/containers/images.sock"

// The files that the plugin hands to "container step": images/spank/container.c.
const (
	life = iota
	_
	_
	request
	result
	messages
)

// command is one of the subcommands.
type command struct {
	name, about string
	run         func(ctx context.Context, args []string, output io.Writer) error
}

func commands() []command {
	return []command{
		{"serve", "Hands out images to the containers of a node", serve},
		{"step", "Makes the container of a step; the plugin of slurmstepd starts it", hold},
		{"sleep", "Waits until its input ends; serve starts it to hold a user namespace", sleep},
		{"squashfuse", "Shows a user an image that is a file of theirs; serve starts it", confined},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "container:", err)
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
	fmt.Fprint(output, "The Coxswain container runs steps of jobs in containers.\n\nUsage: container COMMAND [flags]; container COMMAND --help lists the flags\n\n")
	for _, c := range commands() {
		fmt.Fprintf(output, "  %-10s %s.\n", c.name, c.about)
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
	fs := flag.NewFlagSet("container "+name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	bind(fs)
	err := fs.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fs.SetOutput(output)
		fmt.Fprintf(output, "Usage: container %s [flags]\n\n", name)
		fs.PrintDefaults()
	}
	if err == nil && fs.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: container %s takes flags only, see --help", fs.Arg(0), name)
	}
	return err
}

func noFlags(*flag.FlagSet) {}

func sleep(_ context.Context, args []string, output io.Writer) error {
	if err := parse("sleep", args, output, noFlags); err != nil {
		return err
	}
	squash.Sleep(os.Stdin)
	return nil
}

// confined takes numbers of a user and of groups.
func confined(_ context.Context, args []string, _ io.Writer) error { return squash.Confined(args) }

// hold makes the container of a step, and keeps it until slurmstepd closes the other end of life.
func hold(ctx context.Context, args []string, output io.Writer) error {
	if err := parse("step", args, output, noFlags); err != nil {
		return err
	}
	in, out, tell := os.NewFile(request, "request"), os.NewFile(result, "result"), os.NewFile(messages, "messages")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		// A step may be cancelled while its image is still imported.
		_, _ = io.Copy(io.Discard, os.NewFile(life, "life"))
		cancel()
		close(ended)
	}()
	said, failed := start(ctx, in, tell)
	if failed != nil {
		said = step.Refusal(failed)
	}
	_, err := out.Write(said)
	if err = errors.Join(err, out.Close(), tell.Close()); err != nil || failed != nil {
		return errors.Join(failed, err)
	}
	<-ended
	return nil
}

func start(ctx context.Context, in io.Reader, tell io.Writer) ([]byte, error) {
	r, err := step.Read(in)
	if err != nil {
		return nil, err
	}
	made, err := container.Start(ctx, socket, r, func(line string) { _, _ = fmt.Fprintln(tell, line) })
	if err != nil {
		return nil, err
	}
	return made.Records(), nil
}

// options are the flags of serve.
type options struct {
	images, run, socket string
	insecure            []string
	userspace           bool
}

func (o *options) bind(fs *flag.FlagSet) {
	fs.StringVar(&o.images, "images", "/var/cache/enroot-container-images", "`directory` of images")
	fs.StringVar(&o.run, "run", "/run/coxswain/images", "`directory` for mount points")
	fs.StringVar(&o.socket, "socket", socket, "`path` of the socket")
	fs.Func("insecure", "`hosts` that may be asked by HTTP, with their ports, separated by commas; may be given several times", func(list string) error {
		for host := range strings.SplitSeq(list, ",") {
			if host = strings.TrimSpace(host); host != "" {
				o.insecure = append(o.insecure, host)
			}
		}
		return nil
	})
	fs.BoolVar(&o.userspace, "userspace", false, "let squashfuse mount images, and not the kernel")
}

func serve(ctx context.Context, args []string, output io.Writer) error {
	var o options
	if err := parse("serve", args, output, o.bind); err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(output, nil))
	client, err := registry.New(registry.Options{Environment: credentials.Environment(os.LookupEnv), Insecure: o.insecure})
	if err != nil {
		return err
	}
	mounter, err := squash.New(o.run)
	if err != nil {
		return err
	}
	mounter.Userspace = o.userspace
	mounter.FellBack = func(err error) { log.Warn("Images are mounted by squashfuse", "error", err) }
	server := service.Server{Store: &store.Store{Dir: o.images}, Mounter: mounter, Client: client, Log: log}
	return server.Serve(ctx, o.socket)
}
