// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// A jobFollower keeps what is known of the jobs on the nodes that callers want to know about.
type jobFollower struct {
	connection *connection
	view       *view
	load       *loadLimit
	publish    func(nodes ...string)
	wake       // the jobs can be asked for

	mu        sync.Mutex
	interests map[string]hostlist.Set // nodes by the caller that wants their jobs
	suspended suspendedPolls
}

func newJobFollower(connection *connection, view *view, load *loadLimit, publish func(nodes ...string)) *jobFollower {
	return &jobFollower{
		connection: connection, view: view, load: load, publish: publish, wake: newWake(),
		interests: map[string]hostlist.Set{}, suspended: suspendedPolls{limit: newListLimit()},
	}
}

// WantJobs sets the nodes whose jobs a caller needs, with when they end; it takes the place of what the same caller wanted before, and
// without nodes nothing is wanted any more. Jobs are asked for only while a caller wants them: of all answers of slurmrestd theirs is
// the longest. When it is there, subscribers get the names of those nodes.
func (l *Cache) WantJobs(who string, nodes ...string) { l.jobs.want(who, nodes) }

func (f *jobFollower) want(who string, nodes []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.interests[who]
	if len(nodes) == 0 {
		delete(f.interests, who)
		return
	}
	wanted := hostlist.SetOf(nodes...)
	f.interests[who] = wanted
	if wanted.Difference(old).Len() > 0 {
		f.load.boost(f.view.now(), aboutJobs)
		f.poke()
	}
}

// wanted are the nodes whose jobs any caller wants.
func (f *jobFollower) wanted() hostlist.Set {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := hostlist.SetOf()
	for _, nodes := range f.interests {
		for name := range nodes {
			all.Add(name)
		}
	}
	return all
}

// run asks for the jobs after polls of the nodes, and when another caller wants them, until the context ends. That may take
// a minute, for which the nodes do not wait.
func (f *jobFollower) run(ctx context.Context) { f.wake.run(ctx, f.poll) }

// poll asks for the jobs, if a caller wants them and they may be asked for. What failed is asked for again after
// the next poll of the nodes.
func (f *jobFollower) poll(ctx context.Context) {
	wanted := f.wanted()
	if wanted.Len() > 0 {
		wanted = f.pollSuspended(ctx, wanted)
	}
	asked := f.view.now()
	client, snapshot := f.connection.get(), f.view.stored()
	old := snapshot.jobs
	if wanted.Len() == 0 {
		f.keep(nil, "")
		return
	}
	if f.load.wait(asked, aboutJobs, true) > 0 {
		if snapshot.lacksJobs(wanted) {
			f.load.boost(asked, aboutJobs)
		}
		return
	}
	var next *jobTable
	var err error
	if old.endsHold(asked, wanted, snapshot) {
		next, err = refreshJobs(ctx, client, asked, old)
	} else {
		next, err = f.fetchJobs(ctx, client, asked, wanted, old)
	}
	staleAfter := f.account(asked)
	var bound rest.Bound
	switch {
	case client != f.connection.get(): // the endpoint is another one
	case errors.As(err, &bound):
		f.keep(nil, err.Error())
		f.publish("")
	case err == nil:
		next.staleAfter = staleAfter
		f.keep(next, "")
		f.publish(next.changed(old)...)
	}
}

// account notes what a call about jobs cost. It returns how old the answer may get.
func (f *jobFollower) account(asked time.Time) (staleAfter time.Duration) {
	now := f.view.now()
	f.load.take(now, aboutJobs, f.connection.lastWork(listJobs))
	return 3*(f.load.wait(now, aboutJobs, true)+now.Sub(asked)) + time.Minute
}

// relist lets the next question for a list be for all jobs.
func (f *jobFollower) relist() {
	f.view.swap(func(old *Snapshot) *Snapshot {
		if old.jobs == nil {
			return nil
		}
		next, jobs := *old, *old.jobs
		jobs.since, next.jobs = listTime{}, &jobs
		return &next
	})
}

// keep puts what is known of jobs into the snapshot, or which bound their list exceeds. That makes the snapshot Suspect;
// the next list of nodes makes it Fresh again, once the list of jobs is within its bounds.
func (f *jobFollower) keep(jobs *jobTable, boundExceeded string) {
	f.view.swap(func(old *Snapshot) *Snapshot {
		if old.jobs == jobs && old.boundExceeded == boundExceeded {
			return nil
		}
		next := *old
		next.jobs, next.boundExceeded = jobs, boundExceeded
		if boundExceeded != "" && next.Trust != Suspect {
			next.Trust, next.Since, next.Why = Suspect, f.view.now(), boundExceeded
		}
		return &next
	})
}

// Followed is the Node of a Change about the jobs that a caller follows. No node has that name.
const Followed = "/followed"

// A followedJobs has the states of the jobs whose end a caller waits for. It asks after polls of the nodes, while one of the jobs has
// not ended.
type followedJobs struct {
	connection *connection
	view       *view
	load       *loadLimit
	publish    func(nodes ...string)
	wake       // the states can be asked for

	mu     sync.Mutex
	wanted map[string][]int64 // numbers of jobs by who follows them
	known  map[int64]jobFact
}

// jobFact is Slurm's answer about a job. A job that Slurm does not have has no state.
type jobFact struct {
	state  []string
	exists node.Answer
}

// over reports whether Slurm's answer about the job is final.
func (f jobFact) over() bool {
	return f.exists == node.No || f.exists == node.Yes && rest.Finished(f.state)
}

func newFollowedJobs(connection *connection, view *view, load *loadLimit, publish func(nodes ...string)) *followedJobs {
	return &followedJobs{
		connection: connection, view: view, load: load, publish: publish, wake: newWake(),
		wanted: map[string][]int64{}, known: map[int64]jobFact{},
	}
}

// FollowJobs sets the jobs whose end a caller waits for, by their numbers. It takes the place of what the same caller followed before.
// While one of the jobs has not ended, their states are asked for. When one has changed, subscribers get a Change of Followed.
func (l *Cache) FollowJobs(who string, ids ...int64) { l.followed.follow(who, ids) }

// JobState returns the state of a job that a caller follows, and whether Slurm has it. It is Unknown until Slurm has answered. No is
// the answer for a job that slurmctld has forgotten, or never had.
func (l *Cache) JobState(id int64) (state []string, exists node.Answer) {
	l.followed.mu.Lock()
	defer l.followed.mu.Unlock()
	fact := l.followed.known[id]
	return slices.Clone(fact.state), fact.exists
}

func (f *followedJobs) follow(who string, ids []int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.Equal(f.wanted[who], ids) {
		return
	}
	if len(ids) == 0 {
		delete(f.wanted, who)
	} else {
		f.wanted[who] = slices.Clone(ids)
	}
	all := f.all()
	maps.DeleteFunc(f.known, func(id int64, _ jobFact) bool { return !all[id] })
	f.poke()
}

// all are the jobs that anybody follows. The caller holds the mutex.
func (f *followedJobs) all() map[int64]bool {
	all := map[int64]bool{}
	for _, ids := range f.wanted {
		for _, id := range ids {
			all[id] = true
		}
	}
	return all
}

// open are the jobs whose state may still change.
func (f *followedJobs) open() map[int64]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	open := f.all()
	maps.DeleteFunc(open, func(id int64, _ bool) bool { return f.known[id].over() })
	return open
}

// run asks for the states after polls of the nodes until the context ends.
func (f *followedJobs) run(ctx context.Context) { f.wake.run(ctx, f.poll) }

// poll asks for the states, if a job is open and the limit allows it. What failed is asked for again after the next poll of the
// nodes. A job that is not in the answer counts as forgotten only while the nodes are Fresh.
func (f *followedJobs) poll(ctx context.Context) {
	asked := f.view.now()
	open := f.open()
	if len(open) == 0 || f.view.stored().Trust != Fresh || f.load.wait(asked, aboutJobs, true) > 0 {
		return
	}
	client := f.connection.get()
	states, err := client.StatesOfJobs(ctx, slices.Sorted(maps.Keys(open)))
	f.load.take(f.view.now(), aboutJobs, f.connection.lastWork(listJobs))
	if err != nil || client != f.connection.get() {
		return
	}
	if f.note(open, states) {
		f.publish(Followed)
	}
}

// note keeps what was answered about jobs, and reports whether anything of it is new.
func (f *followedJobs) note(asked map[int64]bool, states []rest.JobState) (changed bool) {
	found := make(map[int64]jobFact, len(states))
	for _, s := range states {
		found[s.ID] = jobFact{s.State, node.Yes}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.all()
	for id := range asked {
		fact, there := found[id]
		if !there {
			fact.exists = node.No
		}
		old := f.known[id]
		if all[id] && (old.exists != fact.exists || !slices.Equal(old.state, fact.state)) {
			f.known[id], changed = fact, true
		}
	}
	return changed
}
