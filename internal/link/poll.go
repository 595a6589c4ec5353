// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

const (
	// share is the reciprocal of the part of slurmrestd's time that polls may take: five percent.
	share = 20
	// shareSoon is the same after a write, when somebody waits for its effect.
	shareSoon = 4
	// shortest is the shortest pause between two polls.
	shortest = 50 * time.Millisecond
	// longestRetry bounds the pause after failures.
	longestRetry = 15 * time.Second
	// grace is added to the age from which a snapshot is stale.
	grace = 10 * time.Second
)

// pauseAfter is how long to be silent after an answer that took so long, or after so many failures in a row. What failed
// did not cost slurmrestd its time (while slurmctld is away an answer takes ten seconds of waiting), so failures have a
// rhythm of their own, and recovery is noticed early.
func pauseAfter(interval, took time.Duration, failures int) time.Duration {
	if failures > 0 {
		return min(longestRetry, time.Second<<min(failures-1, 10))
	}
	return max(interval, share*took)
}

// durations are how long the last answers took, in turn.
type durations struct {
	last [5]time.Duration
	next int
}

// add returns the median. A slow answer or two may have waited for a slurmctld that was starting, for up to 17 s: that
// cost slurmrestd nothing, and what they say, such as that there are no nodes yet, must not be believed the longer for it.
func (d *durations) add(took time.Duration) time.Duration {
	d.last[d.next] = took
	d.next = (d.next + 1) % len(d.last)
	sorted := d.last
	slices.Sort(sorted[:])
	return sorted[len(sorted)/2]
}

// soonAfter is how long to be silent after an answer that took so long before a poll that somebody asked for.
func soonAfter(took time.Duration) time.Duration { return max(shortest, shareSoon*took) }

// pause is silent until the next poll is due, or the context ends.
func (l *Link) pause(ctx context.Context) {
	l.mu.Lock()
	pause, soon := pauseAfter(l.options.Interval, l.took, l.failures), soonAfter(l.took)
	l.mu.Unlock()
	ended := l.options.Clock.Now()
	due := ended.Add(pause)
	timer := l.options.Clock.NewTimer(pause)
	defer func() { timer.Stop() }()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
			return
		case <-l.wake:
			if sooner := ended.Add(soon); sooner.Before(due) {
				due = sooner
				left := due.Sub(l.options.Clock.Now())
				if left <= 0 {
					return
				}
				timer.Stop()
				timer = l.options.Clock.NewTimer(left)
			}
		}
	}
}

// poll asks Slurm for the nodes and swaps the snapshot, once at a time.
func (l *Link) poll(ctx context.Context) error {
	select {
	case l.polling <- struct{}{}:
		defer func() { <-l.polling }()
	case <-ctx.Done():
		return ctx.Err()
	}
	l.mu.Lock()
	client, since, patience := l.client, l.since, pollTimeout(l.took, l.failures)
	l.mu.Unlock()
	asked := l.options.Clock.Now()
	list, err := nodes(ctx, client, since, patience)
	if ctx.Err() != nil {
		// Whoever asked went away; that says nothing about Slurm.
		return ctx.Err()
	}
	pause, current := l.account(client, l.options.Clock.Since(asked), list, err)
	if !current {
		return errEndpoint
	}
	old := l.snapshot.Load()
	next, changed := old.following(asked, list, err)
	next.patience = 3*pause + grace
	l.snapshot.Store(next)
	if next.Trust != old.Trust {
		changed = append(changed, "")
	}
	l.hub.publish(l.key, changed...)
	return err
}

// nodes asks for the nodes and waits for the answer no longer than patience.
func nodes(ctx context.Context, client *rest.Client, since time.Time, patience time.Duration) (rest.NodeList, error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	list, err := client.Nodes(limited, since)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = &rest.Error{Kind: rest.Unavailable, Err: fmt.Errorf("no answer within %s", patience)}
	}
	return list, err
}

// pollTimeout is how long to wait for an answer when one usually takes so long and so many in a row failed. A slurmrestd
// that was asked before slurmctld was up keeps the question for minutes, and another one is answered at once; but a large
// cluster on a slow machine is given its time in the end.
func pollTimeout(took time.Duration, failures int) time.Duration {
	const least, share = 5 * time.Second, 10
	return min(callTimeout, max(least, share*took)<<min(failures, 4))
}

var errEndpoint = errors.New("the endpoint of slurmrestd changed meanwhile")

// account notes what an answer cost and says how long the pause after it is. An answer of an endpoint that is not the
// current one any more is of no use.
func (l *Link) account(client *rest.Client, took time.Duration, list rest.NodeList, err error) (pause time.Duration, current bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if client != l.client {
		return 0, false
	}
	switch {
	case err == nil:
		l.failures, l.took = 0, l.recent.add(took)
		if !list.Unchanged {
			l.since = list.Updated
		}
	case errors.Is(err, rest.Unavailable), errors.Is(err, rest.Unauthorized):
		l.failures++
	default:
		// What makes no sense is asked for again as a whole.
		l.failures++
		l.since = time.Time{}
	}
	return pauseAfter(l.options.Interval, l.took, l.failures), true
}
