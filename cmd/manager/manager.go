// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/observe/tracing"
	"github.com/coxswain-hpc/coxswain/internal/operator"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/webhook"
)

// leaseName is the lease by which replicas agree on who acts.
const leaseName = "coxswain-manager"

// namespaceFile is where a pod finds its namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// newManager makes the manager with all its controllers, ready to start.
func newManager(ctx context.Context, o *options, traces *tracing.Tracing, logger logr.Logger) (ctrl.Manager, error) {
	restConfig, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the Kubernetes cluster: %w", err)
	}
	// Back-pressure is the API server's business (priority and fairness), not a client-side limit's.
	restConfig.QPS, restConfig.Burst = -1, -1
	enabled, err := o.enabled()
	if err != nil {
		return nil, err
	}
	base := ctrl.Options{
		Logger:                        logger,
		Metrics:                       o.metrics.Options(o.enableHTTP2),
		HealthProbeBindAddress:        o.healthAddr,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       o.leaderElectNamespace,
		LeaderElectionReleaseOnCancel: true,
		Controller:                    config.Controller{CacheSyncTimeout: o.cacheSyncTimeout},
	}
	if o.serveWebhooks {
		if base.WebhookServer, err = o.webhooks.Server(o.enableHTTP2); err != nil {
			return nil, err
		}
	}
	conditions, err := o.health()
	if err != nil {
		return nil, err
	}
	limit, err := health.ParseDrainLimit(o.maxDrainedByChecks)
	if err != nil {
		return nil, err
	}
	mgr, err := operator.NewManager(ctx, restConfig, base, operator.Options{
		Namespace: o.ownNamespace(namespaceFile), Namespaces: o.namespaces, Enabled: enabled, Concurrency: o.concurrency,
		Images:        image.Set{Registry: o.imageRegistry, Tag: o.imageTag, KeepSoperators: o.keepSoperatorImages, Operator: o.operatorImage},
		ClusterDomain: o.domain("/etc/resolv.conf"), SlurmrestdURL: o.slurmrestdURL,
		PropagatedNodeConditions: o.propagatedNodeConditions, TopologyLabelPrefix: o.topologyLabelPrefix,
		Health: conditions, DrainLimit: limit, Storage: o.storageOptions(),
		Caches: slurmcache.Options{Budget: o.destructive}, Metrics: metrics.Registry, StatusPage: o.statusPage, ClusterMetricsInterval: o.clusterMetricsInterval,
		Traces: traces,
	})
	if err != nil {
		return nil, err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding the health check: %w", err)
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding the readiness check: %w", err)
	}
	return mgr, addWebhooks(mgr, o)
}

// addWebhooks serves the webhooks, if they are asked for. A manager whose webhooks have no certificate yet is alive but not
// ready.
func addWebhooks(mgr ctrl.Manager, o *options) error {
	if !o.serveWebhooks {
		return nil
	}
	served, err := webhook.Setup(mgr, webhook.Options{Namespaces: o.namespaces}, o.webhooks.Certificates())
	if err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("webhooks", served); err != nil {
		return fmt.Errorf("adding the readiness check of the webhooks: %w", err)
	}
	return nil
}
