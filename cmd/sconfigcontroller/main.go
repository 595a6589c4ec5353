// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Command sconfigcontroller writes the files of the JailedConfigs of one namespace into the jail that is mounted into its pod.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/coxswain-hpc/coxswain/internal/operator/logging"
)

// version is set by the linker.
var version = "unknown"

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "sconfigcontroller:", err)
		os.Exit(1)
	}
}

func run(args []string, output io.Writer) error {
	o, err := parse(args, output)
	if err != nil {
		return err
	}
	if o.configOwner != "" {
		to, err := parseOwner(o.configOwner)
		if err != nil {
			return err
		}
		return giveConfigDirectory(o.jail, to)
	}
	handler, err := logging.Handler(output, o.logLevel, o.logFormat)
	if err != nil {
		return err
	}
	logger := logr.FromSlogHandler(handler)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger.WithName("kubernetes"))
	syscall.Umask(0) // modes of files and directories are what they are said to be
	mgr, stop, err := newManager(o, logger)
	if err != nil {
		return err
	}
	defer stop()
	logger.Info("Starting sconfigcontroller", "version", version, "jail", o.jail)
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}
