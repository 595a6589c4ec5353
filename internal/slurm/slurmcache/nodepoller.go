// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// A nodePoller asks Slurm which nodes changed and swaps the snapshot.
type nodePoller struct {
	interval   time.Duration
	connection *connection
	view       *view
	load       *loadLimit
	done       <-chan struct{} // closed when the cache has ended
	wake                       // somebody wants the next poll soon
	turn       chan struct{}   // held by the goroutine that asks for the nodes: a semaphore of one

	// publish sends changed nodes to subscribers, answered is called after each answer, trustChanged when the snapshot is trusted more or
	// less than before. They do not block.
	publish      func(nodes ...string)
	answered     func()
	trustChanged func()

	mu        sync.Mutex
	since     listTime  // of the last list; zero: ask for a whole one
	clockSeen time.Time // when slurmctld's clock was last seen to go on
	suspected time.Time // when a list was last suspect or lacked nodes
	begun     int       // polls that were begun
	finished  int       // the number of the last one whose answer was waited for
	certain   int       // the number of the last one whose answer was a list, or for which slurmctld's clock was looked at
	failed    error     // what became of that one
	ended     time.Time // and when
	failures  int       // in a row
	lists     durations // of answers that were lists
	listLimit listLimit
}

func newNodePoller(interval time.Duration, connection *connection, view *view, load *loadLimit, done <-chan struct{}) *nodePoller {
	return &nodePoller{
		interval: interval, connection: connection, view: view, load: load, done: done, listLimit: newListLimit(),
		wake: newWake(), turn: make(chan struct{}, 1),
	}
}

// restart lets the next request be for all nodes, of another endpoint, and be sent soon.
func (p *nodePoller) restart(replace func()) {
	p.mu.Lock()
	replace()
	p.since = listTime{}
	p.mu.Unlock()
	p.poke()
}

// relist lets the next request be for all nodes.
func (p *nodePoller) relist() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = listTime{}
}

// run polls until the context ends.
func (p *nodePoller) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-p.wake: // this poll is what was asked for
		default:
		}
		p.pollInTurn(ctx)
		p.waitForPoll(ctx)
	}
}

const (
	// minPollInterval is the shortest time between two polls.
	minPollInterval = 50 * time.Millisecond
	// maxRetryInterval bounds the time between two polls after failures.
	maxRetryInterval = 15 * time.Second
	// staleGracePeriod is added to the age from which a snapshot is stale.
	staleGracePeriod = 10 * time.Second
)

// pollInterval is the time between two polls that nobody asked for, as far as the load limit allows. A failure costs
// slurmrestd no time: while slurmctld is away an answer takes ten seconds of waiting. So failures have an interval of their
// own, and the poller notices early when slurmctld is back.
func pollInterval(interval time.Duration, failures int) time.Duration {
	if failures > 0 {
		return min(maxRetryInterval, time.Second<<min(failures-1, 10))
	}
	return interval
}

// waitForPoll waits until the next poll is due, or the context ends.
func (p *nodePoller) waitForPoll(ctx context.Context) {
	for urgent := false; ; {
		wait := p.untilPoll(urgent)
		if wait <= 0 {
			return
		}
		timer := p.view.clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		case <-p.wake:
			urgent = true
		}
		timer.Stop()
	}
}

// untilPoll is the time until the next poll, urgent or not.
func (p *nodePoller) untilPoll(urgent bool) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.view.now()
	interval := pollInterval(p.interval, p.failures)
	if urgent {
		interval = min(interval, minPollInterval)
	}
	return max(p.ended.Add(interval).Sub(now), p.limited(now, urgent))
}

// takeTurn waits until no other goroutine asks for the nodes; call release in the end.
func (p *nodePoller) takeTurn(ctx context.Context) (release func(), err error) {
	select {
	case p.turn <- struct{}{}:
		return func() { <-p.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// limited is how long the limits keep the nodes from being asked for. The caller holds the mutex.
func (p *nodePoller) limited(now time.Time, urgent bool) time.Duration {
	return max(p.load.wait(now, aboutNodes, urgent), p.listLimit.wait(now))
}

// waitForLimits waits until the nodes may be asked for on behalf of a waiting caller.
func (p *nodePoller) waitForLimits(ctx context.Context) error {
	return wait(ctx, p.view.clock, p.done, func() time.Duration {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.limited(p.view.now(), true)
	})
}

// pollInTurn asks for the nodes, unless the limits forbid it.
func (p *nodePoller) pollInTurn(ctx context.Context) {
	release, err := p.takeTurn(ctx)
	if err != nil {
		return
	}
	defer release()
	p.mu.Lock()
	limited := p.limited(p.view.now(), true)
	p.mu.Unlock()
	if limited > 0 { // somebody else has asked meanwhile
		p.poke()
		return
	}
	_ = p.poll(ctx, false) // the snapshot shows what became of it
}

// poll asks Slurm for the nodes and swaps the snapshot. With certain, the answer that nothing changed is not believed without a look at
// slurmctld's clock. The caller has the turn.
func (p *nodePoller) poll(ctx context.Context, certain bool) error {
	asked := p.view.now()
	p.mu.Lock()
	p.begun++
	number, client, since, timeout := p.begun, p.connection.get(), p.since, rest.ListTimeout(p.lists.median(), p.failures, callTimeout)
	certain = certain || asked.Sub(p.clockSeen) >= clockInterval
	p.mu.Unlock()
	list, err := nodes(ctx, client, since.updated, timeout)
	if certain && err == nil && list.Unchanged && !p.wentOn(ctx, client, since) {
		list, err = nodes(ctx, client, time.Time{}, timeout)
	}
	if ctx.Err() != nil {
		return ctx.Err() // The caller went away; that means nothing about Slurm.
	}
	interval, current := p.account(number, client, asked, list, err)
	p.noteClock(number, asked, certain || !list.Unchanged, err)
	if !current {
		return errEndpoint
	}
	var changed []string
	var old, next *Snapshot
	var seen Trust
	p.view.swap(func(stored *Snapshot) *Snapshot {
		old = stored
		seen = p.view.snapshot().Trust // by those who looked since the last answer, which may have got old meanwhile
		next, changed = old.following(asked, list, err)
		next.staleAfter = 3*interval + staleGracePeriod
		next = next.withChanges(changed, p.view.now())
		return next
	})
	p.suspect(asked, next.Trust == Suspect || err == nil && !list.Unchanged && next.lacks(old))
	if next.Trust != seen || !slices.Equal(next.Unrecognised, old.Unrecognised) {
		changed = append(changed, "")
	}
	if next.Trust != seen {
		p.trustChanged()
	}
	p.publish(changed...)
	if err == nil {
		p.answered()
	}
	return err
}

// wentOn asks slurmctld what time it is.
func (p *nodePoller) wentOn(ctx context.Context, client *rest.Client, since listTime) bool {
	defer func() { p.load.take(p.view.now(), aboutNodes, p.connection.lastWork(getDiag)) }()
	return since.holds(ctx, client, p.view.clock)
}

// noteClock notes whether the result of a poll was certain. After a failure another slurmctld may answer.
func (p *nodePoller) noteClock(number int, asked time.Time, certain bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		p.clockSeen = time.Time{}
	case certain:
		p.certain, p.clockSeen = number, asked
	}
}

// wholeListTimeout is how long lists are asked for as a whole after one that was suspect or lacked nodes.
const wholeListTimeout = 2 * time.Minute

// suspect lets lists be asked for as a whole after one that is suspect. Asked what changed since a list that was wrong, Slurm would
// answer that nothing did, and so confirm it for ever.
func (p *nodePoller) suspect(asked time.Time, suspected bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if suspected {
		p.suspected = asked
	}
	if asked.Sub(p.suspected) < wholeListTimeout {
		p.since = listTime{}
	}
}

// nodes asks for the nodes and waits for the answer no longer than the time-out.
func nodes(ctx context.Context, client *rest.Client, since time.Time, timeout time.Duration) (rest.NodeList, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	list, err := client.Nodes(limited, since)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = &rest.Error{Kind: rest.Unavailable, Err: fmt.Errorf("no answer within %s", timeout)}
	}
	return list, err
}

// The calls whose cost is noted, as rest names them.
const (
	listNodes = "GET nodes"
	listJobs  = "GET jobs" // and their states
	// deletePartition is answered before the partition is deleted, or not.
	deletePartition = "DELETE partition"
	listPartitions  = "GET partitions"
	getJob          = "GET job"
	getDiag         = "GET diag"
	getPing         = "GET ping"
	getConf         = "GET conf"

	listAccountingJobs = "GET accounting jobs"
)

var errEndpoint = errors.New("the endpoint of slurmrestd changed meanwhile")

// account notes what the answer to a poll cost and returns when the next one follows. An answer of an endpoint that is no longer the
// current one is of no use.
func (p *nodePoller) account(number int, client *rest.Client, asked time.Time, list rest.NodeList, err error) (interval time.Duration, current bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.view.now()
	p.ended, p.finished, p.failed = now, number, err
	if client != p.connection.get() {
		p.failed = errEndpoint
		return 0, false
	}
	switch {
	case err == nil:
		p.failures = 0
		p.load.take(now, aboutNodes, p.connection.lastWork(listNodes))
		if !list.Unchanged {
			p.since = listTime{list.Updated, now}
			p.lists.add(now.Sub(asked))
			p.listLimit.took(now)
		}
	case errors.Is(err, rest.Unavailable), errors.Is(err, rest.Unauthorized):
		p.failures++
	default:
		// After an answer that makes no sense the whole list is asked for.
		p.failures++
		p.since = listTime{}
	}
	return max(pollInterval(p.interval, p.failures), p.load.wait(now, aboutNodes, false)), true
}

// expectWithout lets the next lists be without nodes that are about to be deleted on purpose.
func (p *nodePoller) expectWithout(ctx context.Context, names []string) {
	if release, err := p.takeTurn(ctx); err == nil {
		defer release()
		p.view.swap(func(old *Snapshot) *Snapshot { return old.without(names, p.view.now()) })
	}
}

const (
	// maxShortList is how long a list that a drain waits for may take.
	maxShortList = 100 * time.Millisecond
	// afterWriteInterval is how long a write of ours lets the next answer be a list.
	afterWriteInterval = 2 * time.Second
)

// answersSoon reports whether the limits let the nodes be asked for, and the answer keeps nobody waiting. Either lists are short, or
// we have changed nothing since the last one, so that there is a list only if somebody else has.
func (p *nodePoller) answersSoon(written time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.view.now()
	return p.limited(now, true) == 0 && (p.lists.median() < maxShortList || now.Sub(written) > afterWriteInterval)
}
