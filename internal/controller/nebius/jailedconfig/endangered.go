// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package jailedconfig

import (
	"context"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/need"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

const (
	// maxWaitingJobs is how many waiting jobs are read, 12 kB each, to find out which nodes they name.
	maxWaitingJobs = 150
	// maxJobsListed is how many jobs may run or wait where their states are listed, 80 bytes each.
	maxJobsListed = 10_000
	// endangeredInterval is how long after an answer the jobs are looked at again.
	endangeredInterval = 10 * time.Second
)

// endangered returns the nodes that waiting jobs name and of which slurmctld has no record, as while a worker is replaced: it would end
// these jobs if it read its configuration. It returns none when there are too many jobs to look at.
func endangered(ctx context.Context, slurm Slurm, list rest.NodeList) ([]string, error) {
	diag, err := slurm.Diag(ctx)
	if err != nil || diag.JobsRunning+diag.JobsPending > maxJobsListed {
		return nil, err
	}
	named, _, err := need.NamedNodes(ctx, slurm, need.Waiting, maxWaitingJobs)
	if err != nil {
		return nil, err
	}
	there := hostlist.SetOf()
	for _, n := range list.Nodes {
		there.Add(n.Name)
	}
	return named.Difference(there).Sorted(), nil
}
