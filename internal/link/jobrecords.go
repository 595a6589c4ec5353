// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// JobRecords is what is known of all jobs that slurmctld has. It never changes.
type JobRecords struct {
	// Taken is when Slurm was asked which jobs there are, and in which states; zero when it has not answered yet.
	Taken time.Time
	// Jobs are sorted by number. Their states are as new as Taken. What else is told of a job may be older, as it is read one by one.
	Jobs []*rest.JobRecord
	// Missing is how many jobs there are of which nothing but the state is known yet.
	Missing int
	// Tasks is how many entries a number has in Slurm's list of states, if more than one: of an array, the tasks that have not started.
	Tasks map[int64]int
}

// A jobRecorder reads the records of all jobs at the cost of those that are new or in another state than before: 12 kB for each of
// them, and 80 bytes for each of the others. The list of all jobs has 12 kB for each.
type jobRecorder struct {
	connection *connection
	view       *view
	load       *loadLimit

	mu     sync.Mutex   // held by whoever asks
	client *rest.Client // that has said what is known
	known  map[int64]recorded
	listed time.Time // when all jobs were listed
	last   JobRecords
}

// recorded is the record of a job, and when it was read.
type recorded struct {
	*rest.JobRecord
	at time.Time
}

const (
	// maxRecordsRead is how many jobs are read one by one for one answer.
	maxRecordsRead = 100
	// minAgeToReread is how old a record is at least that is read again although its job is in the same state.
	minAgeToReread = 20 * time.Second
	// minTimeBetweenLists is how long the list of all jobs is not asked for again: slurmrestd works eleven seconds for 10,000.
	minTimeBetweenLists = 15 * time.Minute
)

// CollectJobs asks Slurm for all jobs, and returns what is known afterwards. If the limit of slurmrestd's load does not allow it yet,
// that is what was known before. It answers one caller after the other.
func (l *Link) CollectJobs(ctx context.Context) (JobRecords, error) { return l.records.collect(ctx) }

func newJobRecorder(connection *connection, view *view, load *loadLimit) *jobRecorder {
	return &jobRecorder{connection: connection, view: view, load: load, known: map[int64]recorded{}}
}

func (r *jobRecorder) collect(ctx context.Context) (JobRecords, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	client, asked := r.connection.get(), r.view.now()
	if r.load.wait(asked, aboutRecords, true) > 0 {
		return r.last, nil
	}
	if client != r.client { // another slurmrestd may be one of another cluster
		r.client, r.known, r.last, r.listed = client, map[int64]recorded{}, JobRecords{}, time.Time{}
	}
	states, err := client.JobStates(ctx, nil)
	r.account(listJobs)
	if err != nil {
		return r.last, err
	}
	if plan := r.plan(asked, states); plan.whole {
		err = r.readAll(ctx, client, asked)
	} else {
		err = r.readSome(ctx, client, plan.read)
	}
	r.last = r.join(asked, states)
	return r.last, err
}

// expire forgets all jobs when nobody has asked for them for so long that the list of all may be asked for again. It waits for nobody.
func (r *jobRecorder) expire() {
	if !r.mu.TryLock() { // somebody asks
		return
	}
	defer r.mu.Unlock()
	if !r.last.Taken.IsZero() && r.view.now().Sub(r.last.Taken) >= minTimeBetweenLists {
		r.known, r.last, r.listed = map[int64]recorded{}, JobRecords{}, time.Time{}
	}
}

// account notes what a call cost.
func (r *jobRecorder) account(call string) {
	r.load.take(r.view.now(), aboutRecords, r.connection.lastWork(call))
}

// recordPlan says what to ask for: the list of all jobs, or some of them one by one.
type recordPlan struct {
	whole bool
	read  []int64
}

// plan decides what to ask for when these are the states of all jobs. Those come first that are not known, or in another state than
// they were: before those that wait, those that have nodes. What is left goes to those that were read longest ago, as time limits and
// reasons change without a change of state. When most are to be read, the list of all costs less, unless it has been asked for already.
func (r *jobRecorder) plan(now time.Time, states []rest.JobState) recordPlan {
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
	if len(due) > maxRecordsRead && 2*len(due) > len(states) && (r.listed.IsZero() || now.Sub(r.listed) >= minTimeBetweenLists) {
		return recordPlan{whole: true}
	}
	if len(due) < maxRecordsRead {
		slices.SortFunc(old, func(a, b recorded) int { return a.at.Compare(b.at) })
		for _, known := range old {
			due = append(due, known.ID)
		}
		due = unique(due)
	}
	return recordPlan{read: due[:min(len(due), maxRecordsRead)]}
}

// unique joins lists, with each number once. Each task of an array that waits has the number of the array in a list of states.
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

// readAll reads the list of all jobs. What it costs is not accounted for: it is seldom, and at a hundredth of slurmrestd's time nothing
// else would be asked for within a quarter of an hour.
func (r *jobRecorder) readAll(ctx context.Context, client *rest.Client, asked time.Time) error {
	list, err := client.JobRecords(ctx, func(rest.JobRecord) bool { return true })
	if err != nil {
		return err
	}
	r.listed = asked
	for i := range list {
		r.known[list[i].ID] = recorded{&list[i], asked}
	}
	return nil
}

// readSome reads jobs one by one, as far as the limit of slurmrestd's load allows. A job that Slurm has forgotten meanwhile is left out.
func (r *jobRecorder) readSome(ctx context.Context, client *rest.Client, ids []int64) error {
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

// join forgets jobs that are no more, and gives the others the states that they are in.
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
