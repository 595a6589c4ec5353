// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/coxswain-hpc/coxswain/internal/observe/statuspage"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// addStatusPage serves the status page where metrics are served. That server asks the API server who may see it.
func addStatusPage(ctx context.Context, mgr ctrl.Manager, caches *slurmcache.Registry, slurmClusters bool) error {
	source := &statuspage.Gatherer{Reader: mgr.GetClient(), Caches: caches, Elected: mgr.Elected(), SlurmClusters: slurmClusters, Now: time.Now}
	page := statuspage.New(source, caches)
	if err := source.Watch(ctx, mgr.GetCache(), page.Wake); err != nil {
		return err
	}
	if err := mgr.Add(page); err != nil {
		return fmt.Errorf("adding the status page: %w", err)
	}
	for _, path := range []string{statuspage.Root, statuspage.Root + "/"} { // and all that is below
		if err := mgr.AddMetricsServerExtraHandler(path, page); err != nil {
			return fmt.Errorf("adding the status page: %w", err)
		}
	}
	return nil
}
