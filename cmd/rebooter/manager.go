// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/coxswain-hpc/coxswain/internal/controller/rebooter"
)

// lookTimeout is how long the first look at the node may take.
const lookTimeout = 30 * time.Second

// newManager makes the manager with its controller, ready to start.
func newManager(ctx context.Context, o *options, logger logr.Logger, boot string, restart func() error) (ctrl.Manager, error) {
	restConfig, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the Kubernetes cluster: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("making a scheme: %w", err)
	}
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: scheme, Logger: logger,
		Cache:                  cache.Options{ByObject: rebooter.Cached(o.node)},
		Metrics:                o.metrics.Options(o.enableHTTP2),
		HealthProbeBindAddress: o.healthAddr,
		Controller:             config.Controller{CacheSyncTimeout: o.cacheSyncTimeout},
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	if err := look(ctx, mgr.GetAPIReader(), o.node); err != nil {
		return nil, err
	}
	err = rebooter.Setup(mgr, rebooter.Options{Node: o.node, Boot: boot, Reboot: restart, Clock: clock.RealClock{}})
	return mgr, errors.Join(err, mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping))
}

// look reads the node once. A cache would wait for rights that the account does not have until its time is over.
func look(ctx context.Context, live client.Reader, node string) error {
	limited, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	err := live.Get(limited, client.ObjectKey{Name: node}, &corev1.Node{})
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("reading Node %s: %w: name the ServiceAccount in rebooter.serviceAccounts of the operator's chart", node, err)
	case err != nil:
		return fmt.Errorf("reading Node %s: %w", node, err)
	}
	return nil
}
