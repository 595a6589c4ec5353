// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

const (
	// shortest is the shortest pause between two polls.
	shortest = 50 * time.Millisecond
	// longestRetry bounds the pause after failures.
	longestRetry = 15 * time.Second
	// grace is added to the age from which a snapshot is stale.
	grace = 10 * time.Second
)

// rhythm is the pause between two polls that nobody asked for, as far as slurmrestd's time allows. What failed did not cost
// slurmrestd its time (while slurmctld is away an answer takes ten seconds of waiting), so failures have a rhythm of their
// own, and recovery is noticed early.
func rhythm(interval time.Duration, failures int) time.Duration {
	if failures > 0 {
		return min(longestRetry, time.Second<<min(failures-1, 10))
	}
	return interval
}

// pause is silent until the next poll is due, or the context ends.
func (l *Link) pause(ctx context.Context) {
	for urgent := false; ; {
		wait := l.silence(urgent)
		if wait <= 0 {
			return
		}
		timer := l.options.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		case <-l.wake:
			urgent = true
		}
		timer.Stop()
	}
}

// silence is how long to be silent yet, before a poll that somebody asked for or one that nobody did.
func (l *Link) silence(urgent bool) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.options.Clock.Now()
	pause := rhythm(l.options.Interval, l.failures)
	if urgent {
		pause = min(pause, shortest)
	}
	return max(l.ended.Add(pause).Sub(now), l.room(now, aboutNodes, urgent))
}

// turn waits until nobody else asks for the nodes; call what it returns in the end.
func (l *Link) turn(ctx context.Context) (release func(), err error) {
	select {
	case l.polling <- struct{}{}:
		return func() { <-l.polling }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// room is how long to wait until a question may be asked. The caller holds the mutex.
func (l *Link) room(now time.Time, about subject, urgent bool) time.Duration {
	wait := l.may.wait(now, about, urgent)
	if about == aboutNodes {
		wait = max(wait, l.spacing.wait(now))
	}
	return wait
}

// afford waits until there is room for a question that somebody waits for.
func (l *Link) afford(ctx context.Context, about subject) error {
	for {
		l.mu.Lock()
		wait := l.room(l.options.Clock.Now(), about, true)
		l.mu.Unlock()
		if wait == 0 {
			return nil
		}
		timer := l.options.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-l.done:
			timer.Stop()
			return ErrClosed
		case <-timer.C():
		}
	}
}

// round asks for the nodes, and has the jobs asked for. Those may take a minute, for which the nodes do not wait.
func (l *Link) round(ctx context.Context) {
	release, err := l.turn(ctx)
	if err != nil {
		return
	}
	defer release()
	l.mu.Lock()
	wait := l.room(l.options.Clock.Now(), aboutNodes, true)
	l.mu.Unlock()
	if wait > 0 { // somebody else has asked meanwhile
		l.poke()
		return
	}
	_ = l.poll(ctx) // the snapshot says what became of it
}

// poll asks Slurm for the nodes and swaps the snapshot. The caller holds the turn.
func (l *Link) poll(ctx context.Context) error {
	l.mu.Lock()
	l.polls++
	number, client, since, patience := l.polls, l.client, l.since, pollTimeout(l.lists.median(), l.failures)
	l.mu.Unlock()
	asked := l.options.Clock.Now()
	list, err := nodes(ctx, client, since, patience)
	if ctx.Err() != nil {
		return ctx.Err() // Whoever asked went away; that says nothing about Slurm, to nobody.
	}
	pause, current := l.account(number, client, asked, list, err)
	if !current {
		return errEndpoint
	}
	l.swap.Lock()
	old := l.snapshot.Load()
	seen := l.Snapshot().Trust // by whoever looked since the last answer, which may have got old meanwhile
	next, changed := old.following(asked, list, err)
	next.patience = 3*pause + grace
	next = next.noting(changed, l.options.Clock.Now())
	l.snapshot.Store(next)
	l.swap.Unlock()
	l.doubt(asked, next.Trust == Suspect || err == nil && !list.Unchanged && next.lacks(old))
	if next.Trust != seen {
		changed = append(changed, "")
		l.remind()
	}
	l.hub.publish(l.key, changed...)
	if err == nil {
		l.wakeJobs()
	}
	return err
}

// doubtful is how long lists are asked for as a whole after one that was suspect or lacked nodes.
const doubtful = 2 * time.Minute

// doubt lets lists be asked for as a whole after one that is to be doubted: to the question what changed since a list that was
// wrong, Slurm would say that nothing did, and so confirm it for ever.
func (l *Link) doubt(asked time.Time, doubted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if doubted {
		l.doubted = asked
	}
	if asked.Sub(l.doubted) < doubtful {
		l.since = time.Time{}
	}
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

// pollTimeout is how long to wait for an answer when a list usually takes so long and so many in a row failed. A slurmrestd
// that was asked before slurmctld was up keeps the question for minutes, and another one is answered at once; but a large
// cluster on a slow machine is given its time in the end.
func pollTimeout(took time.Duration, failures int) time.Duration {
	const least, share = 5 * time.Second, 10
	return min(callTimeout, max(least, share*took)<<min(failures, 4))
}

// The calls that list nodes and jobs, or the states of jobs, as rest names them.
const (
	listNodes = "GET nodes"
	listJobs  = "GET jobs" // and their states
)

var errEndpoint = errors.New("the endpoint of slurmrestd changed meanwhile")

// account notes what the answer to a poll cost and says how long the pause after it is. An answer of an endpoint that is not
// the current one any more is of no use.
func (l *Link) account(number int, client *rest.Client, asked time.Time, list rest.NodeList, err error) (pause time.Duration, current bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.options.Clock.Now()
	l.ended, l.answered, l.failed = now, number, err
	if client != l.client {
		l.failed = errEndpoint
		return 0, false
	}
	switch {
	case err == nil && list.Unchanged:
		l.failures = 0
		l.may.take(now, aboutNodes, l.shorts.add(l.work[listNodes]))
	case err == nil:
		l.failures, l.since = 0, list.Updated
		l.lists.add(now.Sub(asked))
		l.spacing.took(now)
		l.may.take(now, aboutNodes, l.listWork.add(l.work[listNodes]))
	case errors.Is(err, rest.Unavailable), errors.Is(err, rest.Unauthorized):
		l.failures++
	default:
		// What makes no sense is asked for again as a whole.
		l.failures++
		l.since = time.Time{}
	}
	return max(rhythm(l.options.Interval, l.failures), l.may.wait(now, aboutNodes, false)), true
}
