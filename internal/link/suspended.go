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

// pollSuspended finds out, for the wanted nodes that look idle, whether jobs are suspended on them: Slurm shows such nodes as
// IDLE unless memory is a resource. Mostly no job of the cluster is suspended, which the states of all jobs tell, in a
// hundredth of the bytes of a list. It returns the nodes of which jobs have to be listed all the same.
func (l *Link) pollSuspended(ctx context.Context, wanted hostlist.Set) hostlist.Set {
	snapshot := l.snapshot.Load()
	var idle, unknown []string
	for name := range wanted {
		if snapshot.State(name).Busy() != node.No {
			continue
		}
		idle = append(idle, name)
		if !snapshot.calm.After(snapshot.shown[name]) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return wanted.Difference(hostlist.SetOf(idle...))
	}
	asked := l.options.Clock.Now()
	l.mu.Lock()
	client, next, hidden := l.client, l.nextCalm, l.hidden
	if wait := l.calms.wait(asked); wait > 0 {
		next = asked.Add(max(wait, next.Sub(asked)))
	}
	l.mu.Unlock()
	if !hidden.IsZero() && asked.Sub(hidden) < relist {
		return wanted // the states would not help
	}
	if asked.Before(next) {
		return wanted.Difference(hostlist.SetOf(unknown...))
	}
	calm, err := calm(ctx, client)
	if !l.tookCalm(client, asked, calm || err != nil) || err != nil {
		return wanted.Difference(hostlist.SetOf(unknown...))
	}
	if !calm {
		return wanted
	}
	l.keepCalm(asked)
	slices.Sort(unknown)
	l.hub.publish(l.key, unknown...)
	return wanted.Difference(hostlist.SetOf(idle...))
}

// tookCalm notes what it cost to ask whether jobs are suspended, and what was answered. It says whether the answer is of use.
//
// Somebody waits with the end of a worker for it, and it takes nothing from the allowance of the lists of jobs: one such answer
// of a slow slurmrestd would keep all workers for minutes. A fifth of slurmrestd's time is the most that it takes.
func (l *Link) tookCalm(client *rest.Client, asked time.Time, calm bool) (current bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.options.Clock.Now()
	l.nextCalm = now.Add((hurriedShare - 1) * l.work[listJobs])
	l.calms.took(now)
	l.hidden = time.Time{}
	if !calm {
		l.hidden = asked
	}
	return client == l.client
}

// calm says whether no job of the cluster is suspended.
func calm(ctx context.Context, client *rest.Client) (bool, error) {
	hidden, err := client.JobStates(ctx, func(j rest.JobState) bool { return rest.Hidden(j.State) })
	return err == nil && len(hidden) == 0, err
}

// keepCalm puts into the snapshot when no job was suspended.
func (l *Link) keepCalm(asked time.Time) {
	l.swap.Lock()
	defer l.swap.Unlock()
	next := *l.snapshot.Load()
	next.calm = asked
	l.snapshot.Store(&next)
}

// spare tells nodes whose records may be deleted from those on which jobs are suspended: Slurm does not call them busy, deletes
// their records, and fails the jobs.
func (l *Link) spare(ctx context.Context, nodes []string) (good []string, failures Failures) {
	client := l.Client()
	quiet, err := calm(ctx, client)
	if err == nil && quiet {
		return nodes, nil
	}
	var jobs rest.JobList
	if err == nil {
		jobs, err = client.Jobs(ctx, time.Time{})
	}
	var table *jobTable
	if err == nil {
		table, err = tabulate(l.options.Clock.Now(), jobs, hostlist.SetOf(nodes...))
	}
	if err != nil {
		return nil, all(nodes, fmt.Errorf("finding out whether jobs are suspended there: %w", err))
	}
	failures = Failures{}
	for _, name := range nodes {
		switch {
		case table.partial:
			failures[name] = &rest.Error{Kind: rest.Unavailable, Message: "whether jobs are suspended there cannot be told"}
		case len(table.of[name]) > 0:
			failures[name] = &rest.Error{Kind: rest.Refused, Code: rest.CodeNodesBusy, Message: fmt.Sprintf("job %d is there", table.of[name][0].ID)}
		default:
			good = append(good, name)
		}
	}
	return good, failures
}
