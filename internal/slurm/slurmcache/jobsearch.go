// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/need"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// A jobSearch looks for the jobs that need partitions or nodes which are to go, where slurmctld cannot be asked to delete these: nodes, and
// partitions before 26.05. It
// lists the states of all jobs, and reads those that have not ended, one by one, as far as the limit of slurmrestd's load allows. It
// goes on after later polls of the nodes. Jobs that are submitted meanwhile do not matter: the partitions take none.
type jobSearch struct {
	client *rest.Client
	names  []string
	// needed are the partitions that have to stay, and holders the jobs that need them.
	needed  map[string]bool
	holders []int64
	// listed is true if ids are the jobs of the last list that are still to be read. read are all that were to be read so far.
	listed bool
	ids    []int64
	read   map[int64]bool
}

func newJobSearch(client *rest.Client, names []string) *jobSearch {
	return &jobSearch{client: client, names: names, needed: map[string]bool{}, read: map[int64]bool{}}
}

// maxJobsLookedAt is how many jobs are looked at one by one, 12 kB each.
const maxJobsLookedAt = 150

// errLoadLimit is returned while the limit of slurmrestd's load does not allow the next question.
var errLoadLimit = errors.New("slurmrestd has worked enough for now")

// goesOn reports whether a search is for these partitions.
func (s *jobSearch) goesOn(client *rest.Client, names []string) bool {
	return s != nil && s.client == client && slices.Equal(s.names, names)
}

// open are the partitions for which no job was found.
func (s *jobSearch) open() []string {
	return slices.DeleteFunc(slices.Clone(s.names), func(name string) bool { return s.needed[name] })
}

// goOn searches until it is known which of the partitions no job needs, or until the limit of the load ends it for now. With many jobs
// no partition is free. Meanwhile the next task of an array may have become a job of its own. So a search ends with a list in which all
// jobs have been read.
func (p *leaving) goOn(ctx context.Context, s *jobSearch) (free []string, err error) {
	for {
		if !s.listed {
			if err := p.list(ctx, s); err != nil {
				return nil, err
			}
			if len(s.ids) == 0 {
				break
			}
		}
		for len(s.ids) > 0 && len(s.open()) > 0 {
			if p.load.wait(p.view.now(), aboutJobs, true) > 0 {
				return nil, errLoadLimit
			}
			if err := p.readJob(ctx, s, s.ids[0]); err != nil {
				return nil, err
			}
			s.ids = s.ids[1:]
		}
		if len(s.open()) == 0 {
			break
		}
		s.listed = false
	}
	p.holders = s.holders
	return s.open(), nil
}

// list finds out which jobs are still to be read. Jobs for which partitions stayed the last time come first: as long as they exist, the
// others are not read.
func (p *leaving) list(ctx context.Context, s *jobSearch) error {
	if p.load.wait(p.view.now(), aboutJobs, true) > 0 {
		return errLoadLimit
	}
	if err := p.checkDrained(ctx, s); err != nil {
		return err
	}
	ids, err := need.Numbers(ctx, s.client, need.Unfinished)
	p.took(aboutJobs, listJobs)
	if err != nil {
		return err
	}
	s.ids = ids
	if len(s.ids) > maxJobsLookedAt {
		s.names = nil
	}
	s.ids = slices.DeleteFunc(unique(p.holders, s.ids), func(id int64) bool { return s.read[id] })
	for _, id := range s.ids {
		s.read[id] = true
	}
	s.listed = true
	return nil
}

// checkDrained keeps the partitions, or nodes, that take new jobs.
func (p *leaving) checkDrained(ctx context.Context, s *jobSearch) error {
	if p.nodes {
		snapshot := p.view.snapshot()
		for _, name := range s.names {
			if snapshot.State(name).Drain() != node.Yes {
				s.needed[name] = true
			}
		}
		return nil
	}
	partitions, err := s.client.Partitions(ctx)
	p.took(aboutDaemons, listPartitions)
	for _, partition := range partitions {
		if !slices.Contains(partition.State, "DRAIN") {
			s.needed[partition.Name] = true
		}
	}
	return err
}

// readJob finds out which partitions, or nodes, a job needs.
func (p *leaving) readJob(ctx context.Context, s *jobSearch, id int64) error {
	job, err := s.client.Job(ctx, id)
	p.took(aboutJobs, getJob)
	switch {
	case errors.Is(err, rest.Absent), err == nil && rest.Finished(job.State):
		return nil
	case err != nil:
		return err
	}
	needs := strings.SplitSeq(job.Partition, ",")
	if p.nodes {
		names, err := nodesOf(job)
		if err != nil {
			return err
		}
		needs = slices.Values(names)
	}
	for name := range needs {
		if slices.Contains(s.names, name) && !s.needed[name] {
			s.needed[name], s.holders = true, append(s.holders, id)
		}
	}
	return nil
}

// nodesOf are the nodes that a job has, and those that it names.
func nodesOf(job rest.JobRecord) ([]string, error) {
	var names []string
	for _, list := range []string{job.Nodes, job.Required} {
		if list == "" {
			continue
		}
		some, err := hostlist.Expand(list, rest.MaxNodes)
		if err != nil {
			return nil, fmt.Errorf("reading which nodes job %d needs: %w", job.ID, err)
		}
		names = append(names, some...)
	}
	return names, nil
}

// ChecksUser is the Slurm user that owns the jobs of checks.
const ChecksUser = "soperatorchecks"

// SubmitJob submits a job of a check as ChecksUser. It is not repeated when no answer comes: the job may be there, and CheckJobs
// finds it by its comment.
//
// 24.11 takes a job of a user that slurmctld cannot look up, and holds it for ever. So the cache looks at the first job, cancels one
// like that, and returns Unauthorized, as 26.05 does by itself.
func (l *Cache) SubmitJob(ctx context.Context, s rest.Submission) (int64, error) {
	client, as := l.connection.get(), l.connection.checks.Load()
	if as == nil {
		return 0, errors.New("submitting a job: the Slurm cache has no tokens of user " + ChecksUser)
	}
	id, err := client.SubmitJob(ctx, *as, s)
	if errors.Is(err, rest.Unauthorized) {
		return 0, fmt.Errorf("slurmctld may not know user %s: %w", ChecksUser, err)
	}
	if err != nil || l.connection.checksUID.Load() != 0 {
		return id, err
	}
	job, err := client.Job(ctx, id)
	switch {
	case err != nil: // the job is there, and the next one is looked at
		return id, nil //nolint:nilerr // see above
	case job.UserID != rest.Nobody:
		l.connection.checksUID.Store(job.UserID)
		return id, nil
	}
	unknown := &rest.Error{Kind: rest.Unauthorized, Message: "slurmctld does not know user " + ChecksUser}
	return 0, errors.Join(fmt.Errorf("submitting a job to Slurm by %s: %w", client, unknown), client.CancelJobs(ctx, []int64{id}))
}

// Job asks for one job. It is rest.Absent when slurmctld does not have it any more.
func (l *Cache) Job(ctx context.Context, id int64) (rest.JobRecord, error) {
	return l.connection.get().Job(ctx, id)
}

// CheckJobs lists the jobs of ChecksUser whose comment is ours, for callers that have lost their numbers. slurmrestd sends all jobs
// there are.
//
// Users are distinguished by uid, since slurmrestd may have no names. While the uid is not known, that of the first job counts: nobody
// else can have copied a comment before that job was there.
func (l *Cache) CheckJobs(ctx context.Context, ours func(comment string) bool) ([]rest.JobRecord, error) {
	jobs, err := l.connection.get().JobRecords(ctx, func(j rest.JobRecord) bool { return j.UserID != rest.Nobody && ours(j.Comment) })
	if err != nil || len(jobs) == 0 {
		return nil, err
	}
	uid := l.connection.checksUID.Load()
	if uid == 0 {
		uid = slices.MinFunc(jobs, func(a, b rest.JobRecord) int { return cmp.Compare(a.ID, b.ID) }).UserID
	}
	return slices.DeleteFunc(jobs, func(j rest.JobRecord) bool { return j.UserID != uid }), nil
}

// Unnamed are those of the nodes that no unfinished job has asked for by name. A slurmctld that reads its configuration ends such a job
// when it has no record of the node. With more jobs than can be looked at one by one it returns none.
func (l *Cache) Unnamed(ctx context.Context, nodes []string) ([]string, error) {
	named, known, err := need.NamedNodes(ctx, l.connection.get(), need.Unfinished, maxJobsLookedAt)
	if err != nil {
		return nil, fmt.Errorf("asking Slurm cluster %s which jobs name %s: %w", l.key, hostlist.Compress(nodes), err)
	}
	if !known {
		return nil, nil
	}
	return slices.DeleteFunc(slices.Clone(nodes), named.Contains), nil
}
