// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// ChecksUser is the Slurm user that owns the jobs of checks.
const ChecksUser = "soperatorchecks"

// SubmitJob submits a job of a check as ChecksUser. It is not repeated when no answer comes: the job may be there, and CheckJobs
// finds it by its comment.
//
// 24.11 takes a job of a user that slurmctld cannot look up, and holds it for ever. So the link looks at the first job, cancels one
// like that, and returns Unauthorized, as 26.05 does by itself.
func (l *Link) SubmitJob(ctx context.Context, s rest.Submission) (int64, error) {
	client, as := l.connection.get(), l.connection.checks.Load()
	if as == nil {
		return 0, errors.New("submitting a job: the link has no tokens of user " + ChecksUser)
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
func (l *Link) Job(ctx context.Context, id int64) (rest.JobRecord, error) {
	return l.connection.get().Job(ctx, id)
}

// CheckJobs lists the jobs of ChecksUser whose comment is ours, for callers that have lost their numbers. slurmrestd sends all jobs
// there are.
//
// Users are distinguished by uid, since slurmrestd may have no names. While the uid is not known, that of the first job counts: nobody
// else can have copied a comment before that job was there.
func (l *Link) CheckJobs(ctx context.Context, ours func(comment string) bool) ([]rest.JobRecord, error) {
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
