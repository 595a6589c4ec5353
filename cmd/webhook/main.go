// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Command webhook warns users of mistakes in the objects of Coxswain while they make them. Nothing depends on it.
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
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/coxswain-hpc/coxswain/internal/operator"
	"github.com/coxswain-hpc/coxswain/internal/operator/logging"
	"github.com/coxswain-hpc/coxswain/internal/webhook"
)

// version is set by the linker.
var version = "unknown"

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "webhook:", err)
		os.Exit(1)
	}
}

func run(args []string, output io.Writer) error {
	o, err := parse(args, output)
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
	mgr, err := newManager(o, logger)
	if err != nil {
		return err
	}
	logger.Info("Starting the Coxswain webhook", "version", version)
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		return fmt.Errorf("running the webhook: %w", err)
	}
	return nil
}

// newManager makes a manager without controllers: it serves the webhooks, metrics and probes.
func newManager(o *options, logger logr.Logger) (ctrl.Manager, error) {
	restConfig, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the Kubernetes cluster: %w", err)
	}
	server, err := o.server.Server(o.enableHTTP2)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: operator.Scheme(), Logger: logger, WebhookServer: server,
		Metrics: o.metrics.Options(o.enableHTTP2), HealthProbeBindAddress: o.healthAddr,
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	served, err := webhook.Setup(mgr, webhook.Options{Namespaces: o.namespaces}, o.server.Certificates())
	if err != nil {
		return nil, err
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("webhooks", served)); err != nil {
		return nil, fmt.Errorf("adding the checks: %w", err)
	}
	return mgr, nil
}
