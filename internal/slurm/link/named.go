// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"fmt"
	"slices"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/need"
)

// Unnamed are those of the nodes that no unfinished job has asked for by name. A slurmctld that reads its configuration ends such a job
// when it has no record of the node. With more jobs than can be looked at one by one it returns none.
func (l *Link) Unnamed(ctx context.Context, nodes []string) ([]string, error) {
	named, known, err := need.NamedNodes(ctx, l.connection.get(), need.Unfinished, maxJobsLookedAt)
	if err != nil {
		return nil, fmt.Errorf("asking Slurm cluster %s which jobs name %s: %w", l.key, hostlist.Compress(nodes), err)
	}
	if !known {
		return nil, nil
	}
	return slices.DeleteFunc(slices.Clone(nodes), named.Contains), nil
}
