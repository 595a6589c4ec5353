// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Command container runs steps of jobs in containers.
//
//	container serve   hands out images to the containers of a node; root in the pod of slurmd starts it
//	container step    makes the container of a step; the plugin of slurmstepd starts it, as the user of the job
//	container sleep   waits until its input ends; serve starts it to hold a user namespace
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

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "container:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) > 0 && args[0] == "serve":
		return serve(ctx, args[1:])
	case len(args) == 1 && args[0] == "step":
		return hold(ctx)
	case len(args) == 1 && args[0] == "sleep":
		squash.Sleep(os.Stdin)
		return nil
	}
	return errors.New("usage: container serve|step|sleep")
}

// hold makes the container of a step, and keeps it until slurmstepd closes the other end of life.
func hold(ctx context.Context) error {
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
	at := socket
	if test := os.Getenv("COXSWAIN_CONTAINER_SOCKET"); test != "" {
		at = test
	}
	made, err := container.Start(ctx, at, r, func(line string) { _, _ = fmt.Fprintln(tell, line) })
	if err != nil {
		return nil, err
	}
	return made.Records(), nil
}

func serve(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	images := flags.String("images", "/var/cache/enroot-container-images", "`directory` of images")
	run := flags.String("run", "/run/coxswain/images", "`directory` for mount points")
	at := flags.String("socket", socket, "`path` of the socket")
	insecure := flags.String("insecure", "", "`host` that may be asked by HTTP")
	userspace := flags.Bool("userspace", false, "let squashfuse mount images, and not the kernel")
	if err := flags.Parse(args); err != nil {
		return err
	}
	client, err := registry.New(registry.Options{Environment: credentials.Environment(os.LookupEnv), Insecure: []string{*insecure}})
	if err != nil {
		return err
	}
	mounter, err := squash.New(*run)
	if err != nil {
		return err
	}
	mounter.Userspace = *userspace
	server := service.Server{
		Store: &store.Store{Dir: *images}, Mounter: mounter, Client: client, Log: slog.New(slog.NewJSONHandler(os.Stderr, nil)),
	}
	return server.Serve(ctx, *at)
}
