// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// Unnamed are those of the nodes that no job has asked for by name which has not ended. A slurmctld that reads its configuration ends such
// a job when it has no record of the node. With more jobs than can be looked at one by one there are none.
func (l *Link) Unnamed(ctx context.Context, nodes []string) ([]string, error) {
	named, known, err := namedNodes(ctx, l.connection.get())
	if err != nil {
		return nil, fmt.Errorf("asking Slurm cluster %s which jobs name %s: %w", l.key, hostlist.Compress(nodes), err)
	}
	if !known {
		return nil, nil
	}
	return slices.DeleteFunc(slices.Clone(nodes), named.Contains), nil
}

// namedNodes are the nodes that jobs which have not ended name. With many jobs they are not known.
func namedNodes(ctx context.Context, client *rest.Client) (named hostlist.Set, known bool, err error) {
	ids, err := unfinished(ctx, client)
	if err != nil || len(ids) > maxJobsLookedAt {
		return nil, false, err
	}
	named = hostlist.SetOf()
	for _, id := range ids {
		job, err := client.Job(ctx, id)
		if errors.Is(err, rest.Absent) {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		if job.Required == "" {
			continue
		}
		list, err := hostlist.Parse(job.Required)
		if err != nil {
			return nil, false, fmt.Errorf("reading which nodes job %d names: %w", id, err)
		}
		if list.Len() > rest.MaxNodes {
			return nil, false, nil
		}
		for name := range list.All() {
			named.Add(name)
		}
	}
	return named, true, nil
}

// unfinished are the numbers of the jobs that have not ended.
func unfinished(ctx context.Context, client *rest.Client) ([]int64, error) {
	states, err := client.JobStates(ctx, func(s rest.JobState) bool { return !rest.Finished(s.State) })
	if err != nil {
		return nil, err
	}
	var ids []int64
	for _, s := range states {
		ids = append(ids, s.ID)
	}
	return unique(ids), nil
}
