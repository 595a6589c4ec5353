// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// JobOnNode is a job that occupies a node.
type JobOnNode struct {
	ID   int64
	User string
	// End is when Slurm will end the job at the latest; zero when it has no time limit.
	End time.Time
	// Completing is true if the job has ended, and its processes or its epilog have not.
	Completing bool
}

// jobTable is what is known of the jobs on some nodes.
type jobTable struct {
	// taken is when Slurm was asked for what is in the table, and listed when for a whole list.
	taken, listed time.Time
	// since is when Slurm gave the list, and client the one that got it.
	since  listTime
	client *rest.Client
	// staleAfter is the age from which the table is not used; zero: none.
	staleAfter time.Duration
	covered    hostlist.Set
	of         map[string][]JobOnNode
	// partial is true if nodes of a job could not be read.
	partial bool
	// statesSeen is true if the states of all these jobs were seen since they were listed. So a job whose state is no longer returned has
	// ended.
	statesSeen, stateMissing bool
}

// Jobs returns the jobs that occupy a node, sorted by their end, those without limit last. The answer is Yes when they are known, which
// may be to be none, and Unknown otherwise. Then nobody asked for them with WantJobs, Slurm has not answered yet, or the answer
// contradicts the state of the node.
//
// A node that looks idle may have jobs that are suspended.
func (s *Snapshot) Jobs(name string) ([]JobOnNode, node.Answer) {
	if s.Trust != Fresh {
		return nil, node.Unknown
	}
	state := s.reported(name)
	busy := state.Busy()
	if state.Doubtful() {
		busy = node.No // by the list of jobs, and not because none is suspended
	} else if busy == node.No && s.unsuspended.After(s.changedAt[name]) {
		return nil, node.Yes
	}
	if s.jobs == nil || !s.jobs.covered.Contains(name) || s.jobs.staleAfter > 0 && s.Taken.Sub(s.jobs.taken) > s.jobs.staleAfter {
		return nil, node.Unknown
	}
	list := s.jobs.of[name]
	switch busy {
	case node.No:
		// A list that is older than the state of the node may lack the latest jobs.
		if s.jobs.partial || s.jobs.listed.Before(s.changedAt[name]) {
			return nil, node.Unknown
		}
		return list, node.Yes
	case node.Yes:
		if len(list) == 0 || s.jobs.partial {
			return nil, node.Unknown
		}
		return list, node.Yes
	}
	return nil, node.Unknown
}

// lacksJobs reports whether the jobs of any of some nodes are not known.
func (s *Snapshot) lacksJobs(wanted hostlist.Set) bool {
	for name := range wanted {
		if _, known := s.Jobs(name); known != node.Yes {
			return true
		}
	}
	return false
}

// LastEnd returns when the last job on a node ends: zero when one of them has no time limit, or when there is none. The
// answer is that of Jobs.
func (s *Snapshot) LastEnd(name string) (end time.Time, known node.Answer) {
	list, known := s.Jobs(name)
	if len(list) == 0 {
		return time.Time{}, known
	}
	return list[len(list)-1].End, known
}

// WithJobs returns a snapshot with the jobs of some nodes, for tests and tools.
func (s *Snapshot) WithJobs(jobs map[string][]JobOnNode) *Snapshot {
	next := *s
	next.jobs = &jobTable{taken: s.Taken, listed: s.Taken, covered: hostlist.SetOf(), of: jobs}
	for name, list := range jobs {
		next.jobs.covered.Add(name)
		slices.SortFunc(list, byEnd)
	}
	return &next
}

// byEnd sorts jobs by their end, those without limit last.
func byEnd(a, b JobOnNode) int {
	switch {
	case a.End.IsZero() && b.End.IsZero(), a.End.Equal(b.End):
		return int(a.ID - b.ID)
	case a.End.IsZero():
		return 1
	case b.End.IsZero():
		return -1
	}
	return a.End.Compare(b.End)
}

// maxNodesOfJob bounds the hostlist of one job.
const maxNodesOfJob = 1 << 17

// maxNodesOfJobs bounds the nodes of all jobs together: sixteen jobs on each of the most nodes.
const maxNodesOfJobs = 16 * rest.MaxNodes

// tabulate sorts jobs by node, for the wanted nodes.
//
// The nodes of all jobs together are bounded as well: a job may name as many as there can be.
func tabulate(taken time.Time, list rest.JobList, wanted hostlist.Set) (*jobTable, error) {
	t := &jobTable{taken: taken, listed: taken, covered: wanted, of: map[string][]JobOnNode{}}
	names := 0
	for _, job := range list.Jobs {
		nodes, err := hostlist.Expand(job.Nodes, maxNodesOfJob)
		if names += len(nodes); names > maxNodesOfJobs {
			return nil, fmt.Errorf("sorting jobs by node: %w", rest.Bound(fmt.Sprintf("%d nodes of jobs", maxNodesOfJobs)))
		}
		if err != nil || len(nodes) == 0 {
			t.partial = true
			continue
		}
		for _, name := range nodes {
			if wanted.Contains(name) {
				t.of[name] = append(t.of[name], JobOnNode{ID: job.ID, User: job.User, End: job.End, Completing: rest.Completing(job.State)})
			}
		}
	}
	for _, jobs := range t.of {
		slices.SortFunc(jobs, byEnd)
	}
	return t, nil
}

// changed are the nodes about which two tables differ.
func (t *jobTable) changed(old *jobTable) []string {
	var names []string
	for name := range t.covered {
		if old == nil || !old.covered.Contains(name) || t.partial != old.partial || !slices.Equal(t.of[name], old.of[name]) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// maxJobsAge is how long the ends of jobs are believed to stay as they are. They change when somebody changes a time limit.
const maxJobsAge = 5 * time.Minute

// endsHold reports whether no job can have come to the wanted nodes since they were listed: they drain, or have none. A job may only
// have ended, which its state shows in a hundredth of the bytes.
func (t *jobTable) endsHold(now time.Time, wanted hostlist.Set, snapshot *Snapshot) bool {
	if t == nil || wanted.Difference(t.covered).Len() > 0 || t.partial || t.stateMissing || now.Sub(t.listed) > maxJobsAge {
		return false
	}
	for name := range wanted {
		state := snapshot.State(name)
		if state.Drain() != node.Yes || state.Busy() == node.Yes && len(t.of[name]) == 0 || state.Busy() != node.Yes && t.listed.Before(snapshot.changedAt[name]) {
			return false
		}
	}
	return true
}

// fetchJobs asks for the whole list.
func (f *jobFollower) fetchJobs(ctx context.Context, client *rest.Client, asked time.Time, wanted hostlist.Set, old *jobTable) (*jobTable, error) {
	since := listTime{}
	if old != nil && old.client == client && wanted.Difference(old.covered).Len() == 0 {
		since = old.since
	}
	list, err := client.Jobs(ctx, since.updated)
	if err == nil && list.Unchanged && !since.holds(ctx, client, f.view.clock) {
		list, err = client.Jobs(ctx, time.Time{})
	}
	switch {
	case err != nil:
		return nil, err
	case list.Unchanged:
		same := *old
		same.taken, same.listed = asked, asked
		return &same, nil
	}
	next, err := tabulate(asked, list, wanted)
	if err != nil {
		return nil, err
	}
	next.since, next.client = listTime{list.Updated, f.view.now()}, client
	next.stateMissing = old != nil && old.stateMissing
	return next, nil
}

// refreshJobs asks which of the jobs in a table have ended.
func refreshJobs(ctx context.Context, client *rest.Client, asked time.Time, old *jobTable) (*jobTable, error) {
	ids := map[int64]bool{}
	for _, jobs := range old.of {
		for _, j := range jobs {
			ids[j.ID] = true
		}
	}
	list, err := client.JobStates(ctx, func(j rest.JobState) bool { return ids[j.ID] })
	if err != nil {
		return nil, err
	}
	there := make(map[int64][]string, len(list))
	for _, s := range list {
		there[s.ID] = s.State
	}
	next := *old
	next.taken, next.of, next.statesSeen = asked, make(map[string][]JobOnNode, len(old.of)), true
	for name, list := range old.of {
		for _, j := range list {
			state, told := there[j.ID]
			occupies := told && rest.Occupies(state)
			j.Completing = j.Completing || rest.Completing(state)
			if !told && !old.statesSeen {
				occupies, next.statesSeen, next.stateMissing = true, false, true
			}
			if occupies {
				next.of[name] = append(next.of[name], j)
			}
		}
	}
	return &next, nil
}

// A suspendedPolls is what is known of when to ask whether jobs are suspended.
type suspendedPolls struct {
	limit listLimit
	seen  time.Time // when jobs were suspended last; zero: none is
	next  time.Time // when it may be asked again
}

// pollSuspended finds out, for the wanted nodes that look idle, whether jobs are suspended on them: Slurm shows such nodes as IDLE
// unless memory is a resource. Mostly no job of the cluster is suspended, which the states of all jobs show, in a hundredth of the
// bytes of a list. It returns the nodes of which jobs have to be listed all the same.
func (f *jobFollower) pollSuspended(ctx context.Context, wanted hostlist.Set) hostlist.Set {
	snapshot := f.view.stored()
	var idle, unknown []string
	for name := range wanted {
		if snapshot.reported(name).Busy() != node.No { // jobs whose state is not hidden may be on one that is doubtful
			continue
		}
		idle = append(idle, name)
		if !snapshot.unsuspended.After(snapshot.changedAt[name]) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return wanted.Difference(hostlist.SetOf(idle...))
	}
	asked := f.view.now()
	client := f.connection.get()
	f.mu.Lock()
	next, seen := f.suspended.next, f.suspended.seen
	if wait := f.suspended.limit.wait(asked); wait > 0 {
		next = asked.Add(max(wait, next.Sub(asked)))
	}
	f.mu.Unlock()
	if !seen.IsZero() && asked.Sub(seen) < maxJobsAge {
		return wanted // the states would not help
	}
	if asked.Before(next) {
		return wanted.Difference(hostlist.SetOf(unknown...))
	}
	none, err := noneSuspended(ctx, client)
	f.tookSuspended(asked, none || err != nil)
	if client != f.connection.get() || err != nil {
		return wanted.Difference(hostlist.SetOf(unknown...))
	}
	if !none {
		return wanted
	}
	f.view.swap(func(old *Snapshot) *Snapshot {
		next := *old
		next.unsuspended = asked
		return &next
	})
	slices.Sort(unknown)
	f.publish(unknown...)
	return wanted.Difference(hostlist.SetOf(idle...))
}

// suspendedInverseRate is the reciprocal of the part of slurmrestd's time that it may take to ask whether jobs are suspended.
const suspendedInverseRate = 5

// tookSuspended notes what it cost to ask whether jobs are suspended, and what was answered.
//
// The end of a worker waits for it, and it takes nothing from the limit of the lists of jobs: otherwise one such answer of a slow
// slurmrestd would keep all workers for minutes.
func (f *jobFollower) tookSuspended(asked time.Time, none bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.view.now()
	f.suspended.next = now.Add((suspendedInverseRate - 1) * f.connection.lastWork(listJobs))
	f.suspended.limit.took(now)
	f.suspended.seen = time.Time{}
	if !none {
		f.suspended.seen = asked
	}
}

// noneSuspended reports whether no job of the cluster is suspended.
func noneSuspended(ctx context.Context, client *rest.Client) (bool, error) {
	suspended, err := client.JobStates(ctx, func(j rest.JobState) bool { return rest.Hidden(j.State) })
	return err == nil && len(suspended) == 0, err
}

// deletable separates nodes whose records may be deleted from those on which jobs are suspended: Slurm does not call the latter busy,
// deletes their records, and fails the jobs.
func (w *writer) deletable(ctx context.Context, nodes []string) (good []string, failures Failures) {
	client := w.connection.get()
	none, err := noneSuspended(ctx, client)
	if err == nil && none {
		return nodes, nil
	}
	var jobs rest.JobList
	if err == nil {
		jobs, err = client.Jobs(ctx, time.Time{})
	}
	var table *jobTable
	if err == nil {
		table, err = tabulate(w.view.now(), jobs, hostlist.SetOf(nodes...))
	}
	if err != nil {
		return nil, all(nodes, fmt.Errorf("finding out whether jobs are suspended there: %w", err))
	}
	failures = Failures{}
	for _, name := range nodes {
		switch {
		case table.partial:
			failures[name] = &rest.Error{Kind: rest.Unavailable, Message: "it is not known whether suspended jobs are on the node"}
		case len(table.of[name]) > 0:
			failures[name] = &rest.Error{Kind: rest.Refused, Code: rest.CodeNodesBusy, Message: fmt.Sprintf("job %d is there", table.of[name][0].ID)}
		default:
			good = append(good, name)
		}
	}
	return good, failures
}
