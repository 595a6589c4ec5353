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
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/jailedconfig"
	"github.com/coxswain-hpc/coxswain/internal/node/jail"
	"github.com/coxswain-hpc/coxswain/internal/node/jail/batch"
	"github.com/coxswain-hpc/coxswain/internal/operator"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	slurmtoken "github.com/coxswain-hpc/coxswain/internal/slurm/token"
)

const (
	// lag is how long other machines may be led to old files where their caches of names are not kept true: 15 s and one more.
	lag = 16 * time.Second
	// parallel is how many files are written at once.
	parallel = 32
	// slurmUser is whom slurmrestd is asked for.
	slurmUser = "slurm"
	// callTimeout bounds a call of slurmrestd, during which a group is not worked on otherwise.
	callTimeout = time.Minute
)

// newManager makes the manager with its controller, ready to start, and a function that ends what it has opened.
func newManager(o *options, logger logr.Logger) (ctrl.Manager, func(), error) {
	root, err := jail.Open(o.jail)
	if err != nil {
		return nil, nil, err
	}
	stop := func() { _ = root.Close() }
	coherent, err := root.Coherent()
	if err != nil {
		stop()
		return nil, nil, err
	}
	w := &batch.Writer{Tree: batch.Jail(root), Now: time.Now, Parallel: parallel}
	if !coherent {
		w.Lag = lag
	}
	mgr, err := startable(o, logger, w)
	if err != nil {
		stop()
	}
	return mgr, stop, err
}

func startable(o *options, logger logr.Logger, w *batch.Writer) (ctrl.Manager, error) {
	restConfig, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the Kubernetes cluster: %w", err)
	}
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: operator.Scheme(), Logger: logger,
		Cache:                  cache.Options{DefaultNamespaces: map[string]cache.Config{o.namespace: {}}, DefaultTransform: cache.TransformStripManagedFields()},
		Metrics:                o.metrics.Options(o.enableHTTP2),
		HealthProbeBindAddress: o.healthAddr,
		LeaderElection:         o.leaderElect, LeaderElectionID: o.cluster + "-sconfigcontroller", LeaderElectionNamespace: o.namespace,
		LeaderElectionReleaseOnCancel: true,
		Controller:                    config.Controller{CacheSyncTimeout: o.cacheSyncTimeout},
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	err = jailedconfig.Setup(mgr, jailedconfig.Options{
		Writer: w, Slurm: slurm(o, mgr.GetAPIReader()), Wait: o.wait, Poll: o.poll,
		RetryFirst: time.Second, RetryLast: time.Minute, Concurrency: o.concurrency, Clock: clock.RealClock{},
	})
	return mgr, errors.Join(err, mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping))
}

// slurm connects to slurmrestd with the key that the operator has made for the cluster. It is read each time: it may be replaced.
func slurm(o *options, reader client.Reader) func(context.Context) (jailedconfig.Slurm, error) {
	var cluster nebiusv1.SlurmCluster
	var controller slinkyv1beta1.Controller
	cluster.Name = o.cluster
	controller.Name = cluster.ControllerName()
	ref := controller.AuthJwtRef()
	name := client.ObjectKey{Namespace: o.namespace, Name: ref.Name}
	return func(ctx context.Context) (jailedconfig.Slurm, error) {
		var secret corev1.Secret
		if err := reader.Get(ctx, name, &secret); err != nil {
			return nil, fmt.Errorf("reading the key of tokens from Secret %s: %w", name, err)
		}
		issuer, err := slurmtoken.NewSigned(secret.Data[ref.Key], slurmUser, 0)
		if err != nil {
			return nil, fmt.Errorf("reading the key of tokens from Secret %s: %w", name, err)
		}
		return rest.NewClient(o.slurmrestd, issuer, rest.Options{Timeout: callTimeout})
	}
}
