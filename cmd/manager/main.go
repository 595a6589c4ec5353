// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Command manager is the Coxswain operator: it keeps Slurm clusters on Kubernetes as their objects describe them.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// version is set by the linker.
var version = "unknown"

func main() {
	name, start := "manager", func() error { return run(os.Args[1:], os.Getenv, os.Stderr) }
	if filepath.Base(os.Args[0]) == soperatorChecks {
		name, start = soperatorChecks, func() error { return standIn(ctrl.SetupSignalHandler(), os.Args[1:], os.Stderr) }
	}
	if err := start(); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func run(args []string, getenv func(string) string, output io.Writer) error {
	o, err := parse(args, getenv, output)
	if err != nil {
		return err
	}
	handler, err := o.logHandler(output)
	if err != nil {
		return err
	}
	logger := logr.FromSlogHandler(handler)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger.WithName("kubernetes"))
	if getenv("GOGC") == "" {
		// Most of the heap are caches that hardly change: collecting more often costs little and saves a third of the memory.
		debug.SetGCPercent(40)
	}
	ctx := ctrl.SetupSignalHandler()
	if o.profile {
		stop := serveProfiles(o.profileAddr, logger)
		defer stop()
	}
	traces, err := o.traces(ctx, logger)
	if err != nil {
		return err
	}
	mgr, err := newManager(ctx, o, traces, logger)
	if err != nil {
		return err
	}
	logger.Info("Starting the Coxswain manager", "version", version)
	if err = mgr.Start(ctx); err != nil {
		err = fmt.Errorf("running the manager: %w", err)
	}
	return errors.Join(err, traces.Close())
}

// serveProfiles serves Go profiles until the returned function is called.
func serveProfiles(address string, logger logr.Logger) func() {
	server := &http.Server{Addr: address, Handler: profiles(), ReadHeaderTimeout: readHeaderTimeout}
	go func() {
		if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			logger.Error(err, "Could not serve profiles", "address", address)
		}
	}()
	return func() { _ = server.Close() }
}
