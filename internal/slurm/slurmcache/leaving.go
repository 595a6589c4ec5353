// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/need"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// leaving finds out whether a job still needs partitions, or nodes, that are to go. It asks after polls of the nodes, while one of them
// is needed or may be.
type leaving struct {
	nodes      bool // and not partitions
	connection *connection
	view       *view
	load       *loadLimit
	publish    func(nodes ...string)
	wake       // slurmctld can be asked

	mu     sync.Mutex
	wanted []string
	free   map[string]bool
	again  time.Time // slurmctld is not asked before

	// What follows is of poll alone.
	search  *jobSearch // that the limit of the load has interrupted; nil: none
	holders []int64    // jobs for which partitions stayed
}

func newLeaving(nodes bool, connection *connection, view *view, load *loadLimit, publish func(nodes ...string)) *leaving {
	return &leaving{nodes: nodes, connection: connection, view: view, load: load, publish: publish, wake: newWake(), free: map[string]bool{}}
}

// LeavePartitions sets which partitions are to go when no job needs them. Their lines in slurm.conf take no new jobs. The list takes
// the place of the one before. When a partition may go, subscribers get a Change of Slurmctld.
func (l *Cache) LeavePartitions(names ...string) {
	l.leaving.leave(names)
	l.needs.leave(names)
}

// FreePartitions are the partitions of LeavePartitions that no job needs, by slurmctld's answer. They stay so while they are among
// those of LeavePartitions: nobody can submit a job to them.
func (l *Cache) FreePartitions() map[string]bool { return l.leaving.freed() }

// LeaveNodes sets which nodes that have lines in slurm.conf are to go when no job runs there or names them. Their lines drain them. It
// is as with LeavePartitions, but that a job may name such a node at any time.
func (l *Cache) LeaveNodes(names ...string) { l.leavingNodes.leave(names) }

// FreeNodes are the nodes of LeaveNodes without a known job, as with FreePartitions.
func (l *Cache) FreeNodes() map[string]bool { return l.leavingNodes.freed() }

func (p *leaving) freed() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.free)
}

func (p *leaving) leave(names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.Equal(p.wanted, names) {
		return
	}
	p.wanted, p.again = slices.Clone(names), time.Time{}
	for name := range p.free {
		if !slices.Contains(names, name) {
			delete(p.free, name)
		}
	}
	p.poke()
}

// open are the partitions that are not known to be free to go, if slurmctld may be asked again.
func (p *leaving) open(now time.Time) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Before(p.again) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.wanted), func(name string) bool { return p.free[name] })
}

// run asks after polls of the nodes until the context ends.
func (p *leaving) run(ctx context.Context) { p.wake.run(ctx, p.poll) }

// leavingInterval is how long after an answer slurmctld is asked again.
const leavingInterval = 10 * time.Second

func (p *leaving) poll(ctx context.Context) {
	now := p.view.now()
	names, client := p.open(now), p.connection.get()
	if len(names) == 0 || p.view.stored().Trust != Fresh {
		p.search = nil
		return
	}
	if !p.search.goesOn(client, names) {
		if p.load.wait(now, aboutDaemons, true) > 0 {
			return
		}
		if !p.nodes {
			free, err := p.deletePartitions(ctx, client, names)
			refusal, ok := errors.AsType[*rest.Error](err)
			if !ok || refusal.Kind != rest.Refused || refusal.Code != 0 {
				p.note(client, free)
				return
			}
		}
		p.search = newJobSearch(client, names) // for nodes, and with a slurmrestd before 26.05
	}
	free, err := p.goOn(ctx, p.search)
	if errors.Is(err, errLoadLimit) {
		return
	}
	p.search = nil
	p.note(client, free)
}

// took counts what a question cost.
func (p *leaving) took(about subject, call string) {
	p.load.take(p.view.now(), about, p.connection.lastWork(call))
}

// note keeps which partitions may go, and publishes to subscribers when there is one. Answers of any endpoint but the current one are
// of no use.
func (p *leaving) note(client *rest.Client, free []string) {
	if client != p.connection.get() {
		return
	}
	p.mu.Lock()
	p.again = p.view.now().Add(leavingInterval)
	for _, name := range free {
		if slices.Contains(p.wanted, name) {
			p.free[name] = true
		}
	}
	p.mu.Unlock()
	if len(free) > 0 {
		p.publish(Slurmctld)
	}
}

// deletePartitions has slurmctld delete partitions; it deletes only those that no job needs. So nothing can happen between the question
// and the end of the partition, and the question costs no list of jobs.
func (p *leaving) deletePartitions(ctx context.Context, client *rest.Client, names []string) (free []string, err error) {
	for _, name := range names {
		err := client.DeletePartition(ctx, name)
		p.took(aboutDaemons, deletePartition)
		refusal, refused := errors.AsType[*rest.Error](err)
		switch {
		case err == nil, errors.Is(err, rest.Absent):
			free = append(free, name)
		case !refused || refusal.Code != rest.CodePartitionInUse:
			return free, err
		}
	}
	return free, nil
}

// leavingJobs counts the jobs that need partitions which are to go, for people to read. No decision depends on it.
//
//	what is known                                  what is asked for         why
//	all jobs, for an exporter or the status page   nothing
//	few jobs run or wait                           all states, and records   80 bytes for each job, and 12 kB for each that is new
//	more do                                        nothing else              100,000 states are 8 MB, and slurmrestd works for seconds
type leavingJobs struct {
	connection *connection
	view       *view
	load       *loadLimit
	others     *jobRecorder // that an exporter and the status page ask
	records    *jobRecorder // of jobs that have not ended, which is asked here alone
	publish    func(nodes ...string)
	wake       // jobs can be asked for

	mu     sync.Mutex
	wanted []string
	again  time.Time // they are not counted before
	answer need.Answer
}

const (
	// countInterval is the time between two counts.
	countInterval = time.Minute
	// maxRecordsAge is how old records may be that another caller has asked for.
	maxRecordsAge = 2 * countInterval
	// maxJobsCounted is how many jobs may run or wait where they are counted. A slurmrestd 26.05.5 works for 12 ms to list the states of 1,000
	// jobs and for 1.7 ms to read a record: a count takes it less than 0.3 s, and less than 2 MB.
	maxJobsCounted = 3000
)

// recordsForCount are the records of jobs that may be read for one count: with 12 kB each, those of the first are less than 2 MB.
func recordsForCount() recordsLimit { return recordsLimit{most: 150, reread: 10} }

func newLeavingJobs(connection *connection, view *view, load *loadLimit, others *jobRecorder, publish func(nodes ...string)) *leavingJobs {
	records := newJobRecorder(connection, view, load)
	records.wanted = func(s rest.JobState) bool { return !rest.Finished(s.State) }
	return &leavingJobs{
		connection: connection, view: view, load: load, others: others, records: records, publish: publish, wake: newWake(),
		answer: need.Answer{Unknown: notCounted},
	}
}

const (
	notCounted = "Slurm has not been asked yet"
	notTrusted = "Slurm does not answer, or its answers are in doubt"
)

// LeavingJobs returns which jobs need the partitions that are to go, as they were counted last: every minute at most. Subscribers get a
// Change of Slurmctld when that changes.
func (l *Cache) LeavingJobs() need.Answer {
	l.needs.mu.Lock()
	defer l.needs.mu.Unlock()
	if l.needs.view.snapshot().Trust != Fresh {
		return need.Answer{Unknown: notTrusted}
	}
	return l.needs.answer
}

// leave sets which partitions are to go.
func (j *leavingJobs) leave(names []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if slices.Equal(j.wanted, names) {
		return
	}
	j.wanted, j.again, j.answer = slices.Clone(names), time.Time{}, need.Answer{Unknown: notCounted}
	j.poke()
}

// due are the partitions whose jobs are to be counted now.
func (j *leavingJobs) due(now time.Time) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if now.Before(j.again) {
		return nil
	}
	return j.wanted
}

// run counts after polls of the nodes until the context ends.
func (j *leavingJobs) run(ctx context.Context) { j.wake.run(ctx, j.poll) }

func (j *leavingJobs) poll(ctx context.Context) {
	now := j.view.now()
	names, client := j.due(now), j.connection.get()
	if len(names) == 0 || j.view.stored().Trust != Fresh {
		return
	}
	if answer, ok := j.count(ctx, client, names); ok && client == j.connection.get() {
		j.note(names, answer)
	}
}

// note keeps an answer about partitions, if they are still those that are to go.
func (j *leavingJobs) note(names []string, answer need.Answer) {
	j.mu.Lock()
	current := slices.Equal(j.wanted, names)
	changed := current && !reflect.DeepEqual(j.answer, answer)
	if current {
		j.answer, j.again = answer, j.view.now().Add(countInterval)
	}
	j.mu.Unlock()
	if changed {
		j.publish(Slurmctld)
	}
}

// count counts the jobs. It returns false when Slurm may not be asked yet, or has not answered.
func (j *leavingJobs) count(ctx context.Context, client *rest.Client, names []string) (need.Answer, bool) {
	if known, ok := j.others.recent(maxRecordsAge); ok {
		return answerOf(known, names), true
	}
	if j.load.wait(j.view.now(), aboutRecords, true) > 0 {
		return need.Answer{}, false
	}
	diag, err := client.Diag(ctx)
	j.load.take(j.view.now(), aboutRecords, j.connection.lastWork(getDiag))
	if err != nil {
		return need.Answer{}, false
	}
	if jobs := diag.JobsRunning + diag.JobsPending; jobs > maxJobsCounted {
		return need.Answer{Unknown: "more than " + strconv.Itoa(maxJobsCounted) + " jobs run or wait, too many to count"}, true
	}
	known, err := j.records.collect(ctx, recordsForCount())
	if err != nil || known.Taken.IsZero() {
		return need.Answer{}, false
	}
	return answerOf(known, names), true
}

// answerOf counts the jobs of partitions among all that are known.
func answerOf(known JobRecords, names []string) need.Answer {
	jobs := make([]need.Job, 0, len(known.Jobs))
	for _, r := range known.Jobs {
		jobs = append(jobs, need.Job{
			ID: strconv.FormatInt(r.ID, 10), Partition: r.Partition, State: r.State, Reason: r.Reason, End: r.Limit, Tasks: known.Tasks[r.ID],
		})
	}
	return need.Answer{Of: need.Count(jobs, names), AtLeast: known.Missing > 0}
}
