// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Command exporter shows Prometheus what a Slurm cluster is doing: its nodes, its jobs and its slurmctld.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"

	"github.com/coxswain-hpc/coxswain/internal/observe/exporter"
	"github.com/coxswain-hpc/coxswain/internal/operator/logging"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// version is set by the linker.
var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.LookupEnv, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "exporter:", err)
		os.Exit(1)
	}
}

// run serves until the context ends.
func run(ctx context.Context, args []string, environment func(string) (string, bool), output io.Writer) error {
	o, err := parse(args, environment, output)
	if err != nil {
		return err
	}
	handler, err := logging.Handler(output, o.logLevel, o.logFormat)
	if err != nil {
		return err
	}
	logger := logr.FromSlogHandler(handler)
	issuer, err := o.issuer()
	if err != nil {
		return err
	}
	// What is collected is not much older than a collection, then.
	registry := slurmcache.NewRegistry(slurmcache.Options{Interval: max(time.Second, o.interval/3)})
	defer registry.Close()
	changes := registry.Subscribe()
	defer changes.Close()
	l, err := registry.Set(slurmcache.Key{Namespace: o.namespace, Name: o.cluster}, slurmcache.Config{Endpoint: o.slurmrestd, Issuer: issuer}) //nolint:contextcheck // Close ends it
	if err != nil {
		return err
	}
	e := exporter.New(l, exporter.Options{
		Interval: o.interval, MaxInflight: o.inflight, Lookback: o.lookback, Log: logger,
		Text: exporter.TextOptions{MaxSeries: o.maxSeries, WithoutLabels: o.withoutLabels},
	})
	logger.Info("Starting exporter", "version", version, "slurmrestd", o.slurmrestd, "interval", o.interval.String())
	return serve(ctx, map[string]http.Handler{o.metricsAddr: e.Metrics(), o.monitoringAddr: e.Monitoring()}, func(ctx context.Context) {
		awaitAnswer(ctx, l, changes)
		e.Run(ctx)
	})
}

// maxFirstAnswer is how long the first collection waits for Slurm's first answer.
const maxFirstAnswer = 10 * time.Second

// awaitAnswer waits until Slurm has answered for the first time, or has not for a while, so that the first collection has something to
// show.
func awaitAnswer(ctx context.Context, l *slurmcache.Cache, changes *slurmcache.Subscription) {
	patience := time.NewTimer(maxFirstAnswer)
	defer patience.Stop()
	for l.Snapshot().Taken.IsZero() {
		select {
		case <-ctx.Done():
			return
		case <-patience.C:
			return
		case <-changes.Ready():
			changes.Take()
		}
	}
}

// stopTimeout is how long answers under way have when the program ends.
const stopTimeout = 5 * time.Second

// serve serves handlers by their addresses while work is done, until the context ends or a server fails.
func serve(ctx context.Context, handlers map[string]http.Handler, work func(context.Context)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var running sync.WaitGroup
	var servers []*http.Server
	for address, handler := range handlers {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			stop(nil)
			return errors.Join(fmt.Errorf("serving metrics: %w", err), shutDown(context.WithoutCancel(ctx), servers))
		}
		server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
		servers = append(servers, server)
		running.Go(func() {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				stop(fmt.Errorf("serving metrics at %s: %w", address, err))
			}
		})
	}
	running.Go(func() { work(ctx) })
	<-ctx.Done()
	err := shutDown(context.WithoutCancel(ctx), servers)
	running.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		err = errors.Join(cause, err)
	}
	return err
}

// shutDown lets servers end what they have begun to answer.
func shutDown(ctx context.Context, servers []*http.Server) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	var errs []error
	for _, server := range servers {
		if err := server.Shutdown(ctx); err != nil {
			errs = append(errs, fmt.Errorf("ending the server of metrics: %w", err))
		}
	}
	return errors.Join(errs...)
}
