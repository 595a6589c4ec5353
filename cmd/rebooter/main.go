// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Command rebooter drains and reboots the Kubernetes node on which it runs, as conditions of the Node ask for.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/coxswain-hpc/coxswain/internal/node/machine"
	"github.com/coxswain-hpc/coxswain/internal/operator/logging"
)

// version is set by the linker.
var version = "unknown"

func main() {
	if err := run(os.Args[1:], os.Stderr, os.Getenv); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "rebooter:", err)
		os.Exit(1)
	}
}

func run(args []string, output io.Writer, getenv func(string) string) error {
	o, err := parse(args, output, getenv)
	if err != nil {
		return err
	}
	handler, err := logging.Handler(output, o.logLevel, o.logFormat)
	if err != nil {
		return err
	}
	logger := logr.FromSlogHandler(handler)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger.WithName("kubernetes"))
	host := machine.Machine{Proc: "/proc"}
	boot, err := host.Boot()
	if err = errors.Join(host.Check(), err); err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	mgr, err := newManager(ctx, o, logger, boot, host.Reboot)
	if err != nil {
		return err
	}
	logger.Info("Starting rebooter", "version", version, "node", o.node, "boot", boot)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}
