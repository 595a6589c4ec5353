// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

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
		if snapshot.said(name).Busy() != node.No { // jobs whose state is not hidden may be on one that is doubtful
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
