// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package need

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// Slurm is what is asked for jobs.
type Slurm interface {
	JobStates(ctx context.Context, wanted func(rest.JobState) bool) ([]rest.JobState, error)
	Job(ctx context.Context, id int64) (rest.JobRecord, error)
}

// Unfinished reports whether a job has not ended.
func Unfinished(s rest.JobState) bool { return !rest.Finished(s.State) }

// Waiting reports whether a job has not ended and occupies no node.
func Waiting(s rest.JobState) bool { return Unfinished(s) && !rest.Occupies(s.State) }

// Numbers are the numbers of jobs in some states.
func Numbers(ctx context.Context, slurm Slurm, wanted func(rest.JobState) bool) ([]int64, error) {
	states, err := slurm.JobStates(ctx, wanted)
	if err != nil {
		return nil, err
	}
	var ids []int64
	for _, s := range states {
		ids = append(ids, s.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// NamedNodes are the nodes that jobs in some states name: a slurmctld that reads its configuration ends such a job when it has no record of the
// node. They are not known with more than most jobs, since each is read, with 12 kB.
func NamedNodes(ctx context.Context, slurm Slurm, wanted func(rest.JobState) bool, most int) (named hostlist.Set, known bool, err error) {
	ids, err := Numbers(ctx, slurm, wanted)
	if err != nil || len(ids) > most {
		return nil, false, err
	}
	named = hostlist.SetOf()
	for _, id := range ids {
		job, err := slurm.Job(ctx, id)
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
