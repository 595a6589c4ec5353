// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/coxswain-hpc/coxswain/internal/observe/exporter"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// maxSeriesPerMetric is the limit of the exporter's own program.
const maxSeriesPerMetric = 200000

// addClusterMetrics serves the metrics of Slurm clusters where those of the operator are served. They are collected while the manager leads.
func addClusterMetrics(mgr ctrl.Manager, caches *slurmcache.Registry, interval time.Duration) error {
	clusters := exporter.NewClusters(caches, exporter.Options{
		Interval: interval, MaxInflight: 1, Text: exporter.TextOptions{MaxSeries: maxSeriesPerMetric}, Log: mgr.GetLogger().WithName("exporter"),
	})
	if err := mgr.Add(clusters); err != nil {
		return fmt.Errorf("adding the metrics of clusters: %w", err)
	}
	if err := mgr.AddMetricsServerExtraHandler(exporter.ClustersPath, clusters); err != nil {
		return fmt.Errorf("adding the metrics of clusters: %w", err)
	}
	return nil
}
