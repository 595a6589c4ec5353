// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// JobRecords is what is known of all jobs that slurmctld has. It never changes.
type JobRecords struct {
	// Taken is when Slurm was asked which jobs there are, and in which states; zero when it has not answered yet.
	Taken time.Time
	// Jobs are sorted by number. Their states are as new as Taken. The rest of a job may be older, as jobs are read one by one.
	Jobs []*rest.JobRecord
	// Missing is how many jobs are known only by their state yet.
	Missing int
	// Tasks is how many entries a number has in Slurm's list of states, if more than one: the tasks of an array that have not started.
	Tasks map[int64]int
}

// A jobRecorder reads the records of all jobs at the cost of those that are new or in another state than before: 12 kB for each of
// them, and 80 bytes for each of the others. It never asks for the list of all jobs: that leaves a slurmrestd with 2.4 GB for 5,000.
type jobRecorder struct {
	connection *connection
	view       *view
	load       *loadLimit
	wanted     func(rest.JobState) bool // which jobs are read; nil: all

	mu     sync.Mutex   // held by the goroutine that asks
	client *rest.Client // the source of what is known
	known  map[int64]recorded
	began  time.Time // when the first states of all jobs were asked for, until all jobs are known; zero afterwards
	last   JobRecords
}

// recorded is the record of a job, and when it was read.
type recorded struct {
	*rest.JobRecord
	at time.Time
}

const (
	// maxRecordsReread is the reread of an answer for an exporter.
	maxRecordsReread = 100
	// minAgeToReread is the least age of a record that is read again although its job is in the same state.
	minAgeToReread = 20 * time.Second
	// recordsTimeout is how long records are kept that nobody asks for, and how long the first ones of all jobs may be read faster.
	recordsTimeout = 15 * time.Minute
	// firstRecordsSpeed is how much more of slurmrestd's time the first records of all jobs may have: a tenth of it.
	firstRecordsSpeed = 10
)

// CollectJobs asks Slurm for all jobs, and returns what is known afterwards. If the limit of slurmrestd's load does not allow it yet,
// that is what was known before. It answers one caller after the other.
func (l *Cache) CollectJobs(ctx context.Context) (JobRecords, error) {
	return l.records.collect(ctx, recordsLimit{most: math.MaxInt, reread: maxRecordsReread})
}

// A recordsLimit is how many jobs are read for one answer, and up to which number jobs in the same state as before are read again.
type recordsLimit struct{ most, reread int }

func newJobRecorder(connection *connection, view *view, load *loadLimit) *jobRecorder {
	return &jobRecorder{connection: connection, view: view, load: load, known: map[int64]recorded{}}
}

// recent is what is known of all jobs, if all are known and not older than age. It never blocks.
func (r *jobRecorder) recent(age time.Duration) (JobRecords, bool) {
	if !r.mu.TryLock() { // somebody asks
		return JobRecords{}, false
	}
	defer r.mu.Unlock()
	ok := r.client == r.connection.get() && !r.last.Taken.IsZero() && r.last.Missing == 0 && r.view.now().Sub(r.last.Taken) <= age
	return r.last, ok
}

func (r *jobRecorder) collect(ctx context.Context, limit recordsLimit) (JobRecords, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	client, asked := r.connection.get(), r.view.now()
	if client != r.client { // another slurmrestd may be one of another cluster
		r.client = client
		r.forget()
	}
	if r.load.wait(asked, aboutRecords, true) > 0 {
		return r.last, nil
	}
	if r.last.Taken.IsZero() {
		r.began = asked
	}
	states, err := client.JobStates(ctx, r.wanted)
	r.account(listJobs)
	if err != nil {
		return r.last, err
	}
	due := r.plan(asked, states, limit.reread)
	err = r.read(ctx, client, due[:min(len(due), limit.most)])
	r.last = r.join(asked, states)
	if r.last.Missing == 0 || asked.Sub(r.began) >= recordsTimeout {
		r.began = time.Time{}
	}
	return r.last, err
}

// forget forgets all jobs.
func (r *jobRecorder) forget() {
	r.known, r.last, r.began = map[int64]recorded{}, JobRecords{}, time.Time{}
}

// expire forgets all jobs when nobody has asked for them for long. It never blocks.
func (r *jobRecorder) expire() {
	if !r.mu.TryLock() { // somebody asks
		return
	}
	defer r.mu.Unlock()
	if !r.last.Taken.IsZero() && r.view.now().Sub(r.last.Taken) >= recordsTimeout {
		r.forget()
	}
}

// account notes what a call cost. While the first records of all jobs are read, that counts for less.
func (r *jobRecorder) account(call string) {
	cost := r.connection.lastWork(call)
	if !r.began.IsZero() {
		cost /= firstRecordsSpeed
	}
	r.load.take(r.view.now(), aboutRecords, cost)
}

// plan decides which jobs to read, in order, when states are the states of all. Unknown jobs and those whose state changed come first:
// those that have nodes before those that wait. If these are fewer than reread, those that were read longest ago come next, as time
// limits and reasons change without a change of state.
func (r *jobRecorder) plan(now time.Time, states []rest.JobState, reread int) []int64 {
	var running, waiting []int64
	var old []recorded
	for _, s := range states {
		known, ok := r.known[s.ID]
		switch {
		case ok && slices.Equal(known.State, s.State):
			if now.Sub(known.at) >= minAgeToReread {
				old = append(old, known)
			}
		case rest.Occupies(s.State):
			running = append(running, s.ID)
		default:
			waiting = append(waiting, s.ID)
		}
	}
	due := unique(running, waiting)
	if len(due) >= reread {
		return due
	}
	slices.SortFunc(old, func(a, b recorded) int { return a.at.Compare(b.at) })
	for _, known := range old {
		due = append(due, known.ID)
	}
	due = unique(due)
	return due[:min(len(due), reread)]
}

// unique joins lists, with each number once. In a list of states each waiting task of an array has the array's number.
func unique(lists ...[]int64) []int64 {
	var out []int64
	seen := map[int64]bool{}
	for _, id := range slices.Concat(lists...) {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}

// read reads jobs one by one, as far as the limit of slurmrestd's load allows. A job that Slurm has forgotten meanwhile is left out.
func (r *jobRecorder) read(ctx context.Context, client *rest.Client, ids []int64) error {
	for _, id := range ids {
		asked := r.view.now()
		if r.load.wait(asked, aboutRecords, true) > 0 {
			return nil
		}
		job, err := client.Job(ctx, id)
		r.account(getJob)
		switch {
		case errors.Is(err, rest.Absent):
		case err != nil:
			return err
		default:
			r.known[id] = recorded{&job, asked}
		}
	}
	return nil
}

// join forgets jobs that no longer exist, and updates the states of the others.
func (r *jobRecorder) join(asked time.Time, states []rest.JobState) JobRecords {
	out := JobRecords{Taken: asked}
	next := make(map[int64]recorded, len(r.known))
	missing := map[int64]bool{}
	seen := make(map[int64]int, len(states))
	for _, s := range states {
		if seen[s.ID]++; seen[s.ID] > 1 {
			if out.Tasks == nil {
				out.Tasks = map[int64]int{}
			}
			out.Tasks[s.ID] = seen[s.ID]
		}
		known, ok := r.known[s.ID]
		switch _, done := next[s.ID]; {
		case !ok:
			missing[s.ID] = true
		case !done:
			if !slices.Equal(known.State, s.State) {
				job := *known.JobRecord
				job.State = s.State
				out.Jobs = append(out.Jobs, &job)
			} else {
				out.Jobs = append(out.Jobs, known.JobRecord)
			}
			next[s.ID] = known
		}
	}
	r.known, out.Missing = next, len(missing)
	slices.SortFunc(out.Jobs, func(a, b *rest.JobRecord) int { return int(a.ID - b.ID) })
	return out
}

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
func (l *Cache) CollectAccountingJobs(ctx context.Context, lookback time.Duration) (JobRecords, error) {
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
