// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// An accountingRecorder reads the records of jobs from slurmdbd. It asks once for all jobs of the time that callers want to look back,
// and then only for those that were there since it asked: they wait, run, or have ended since.
type accountingRecorder struct {
	connection *connection
	view       *view
	load       *loadLimit

	mu       sync.Mutex   // held by the goroutine that asks
	client   *rest.Client // the source of what is known
	known    map[int64]*rest.JobRecord
	lookback time.Duration
	last     JobRecords
}

// accountingOverlap is how far a question to slurmdbd goes back before the last one. slurmctld reports jobs to it some time after their
// end, and all three have clocks of their own.
const accountingOverlap = 5 * time.Minute

// CollectAccountingJobs asks slurmdbd for the jobs that waited, ran or ended within a time, and returns what is known afterwards. If the
// limit of slurmrestd's load does not allow it yet, that is what was known before. It answers one caller after the other.
func (l *Link) CollectAccountingJobs(ctx context.Context, lookback time.Duration) (JobRecords, error) {
	return l.accounted.collect(ctx, lookback)
}

func newAccountingRecorder(connection *connection, view *view, load *loadLimit) *accountingRecorder {
	return &accountingRecorder{connection: connection, view: view, load: load}
}

func (r *accountingRecorder) collect(ctx context.Context, lookback time.Duration) (JobRecords, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	client, asked := r.connection.get(), r.view.now()
	if client != r.client || lookback > r.lookback { // another slurmrestd may be one of another cluster
		r.client, r.known, r.last = client, map[int64]*rest.JobRecord{}, JobRecords{}
	}
	r.lookback = lookback
	if r.load.wait(asked, aboutRecords, true) > 0 {
		return r.last, nil
	}
	ahead := r.view.stored().Ahead // slurmdbd's answers are by the clock of Slurm
	oldest := asked.Add(ahead - lookback)
	list, err := client.AccountingJobs(ctx, latest(oldest, r.last.Taken.Add(ahead-accountingOverlap)))
	r.load.take(r.view.now(), aboutRecords, r.connection.lastWork(listAccountingJobs))
	if err != nil {
		return r.last, err
	}
	r.known = join(r.known, list, oldest)
	r.last = JobRecords{Taken: asked}
	for _, j := range r.known {
		r.last.Jobs = append(r.last.Jobs, j)
	}
	slices.SortFunc(r.last.Jobs, func(a, b *rest.JobRecord) int { return int(a.ID - b.ID) })
	return r.last, nil
}

// join adds slurmdbd's answer to what was known. Of the jobs missing in the answer, those stay that had ended, and not too long ago.
func join(known map[int64]*rest.JobRecord, list []rest.JobRecord, oldest time.Time) map[int64]*rest.JobRecord {
	next := make(map[int64]*rest.JobRecord, len(known)+len(list))
	for id, j := range known {
		if rest.Finished(j.State) && j.End.After(oldest) {
			next[id] = j
		}
	}
	for i := range list {
		next[list[i].ID] = &list[i]
	}
	return next
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
