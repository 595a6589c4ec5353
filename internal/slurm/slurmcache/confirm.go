// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// Confirm asks Slurm now and returns the Snapshot of the answer: the last look before something is destroyed that the named nodes stand
// for. It is an error when Slurm did not answer, or when the snapshot is not Fresh. Only a list confirms that Slurm does not have a
// node; the answer that nothing changed since a list does not. That answer confirms anything only while slurmctld's clock has gone on
// since the list. If it has not, or slurmctld does not report its time, Confirm asks for a list.
//
// Any number of callers share one request, as long as it is sent after each of them called. While requests have taken
// more of slurmrestd's time than they may, Confirm waits; the context bounds that.
func (l *Cache) Confirm(ctx context.Context, nodes ...string) (*Snapshot, error) {
	fail := func(err error) (*Snapshot, error) {
		return nil, fmt.Errorf("asking Slurm cluster %s about %s once more: %w", l.key, hostlist.Compress(nodes), err)
	}
	l.nodes.load.boost(l.view.now(), aboutNodes)
	if err := l.nodes.ask(ctx, !l.view.stored().has(nodes)); err != nil {
		return fail(err)
	}
	snapshot := l.Snapshot()
	if snapshot.Trust != Fresh {
		return fail(fmt.Errorf("the answer is not to be trusted: %s", snapshot.Why))
	}
	return snapshot, nil
}

// Relist lets the next request be for all nodes instead of for what changed. Asked what changed since a list that lacked a node by
// mistake, Slurm answers for ever that nothing did. An answer that is on its way may undo that, so a caller that needs a later
// Snapshot.Listed calls Relist again until it is there.
func (l *Cache) Relist() { l.nodes.relist() }

// ask polls, or waits for a certain poll of somebody else that begins after the call; with list, the answer has to be a list.
func (p *nodePoller) ask(ctx context.Context, list bool) error {
	select {
	case <-p.done:
		return ErrClosed
	default:
	}
	called := p.view.now()
	p.mu.Lock()
	before := p.begun
	p.mu.Unlock()
	release, err := p.takeTurn(ctx)
	if err != nil {
		return err
	}
	defer release()
	p.mu.Lock()
	asked, certain, failed := p.finished > before, p.certain > before, p.failed // polls that their callers left do not count
	p.mu.Unlock()
	list = list && p.view.stored().Listed.Before(called)
	if asked && (failed != nil || certain && !list) {
		return failed
	}
	if err := p.waitForLimits(ctx); err != nil {
		return err
	}
	if list {
		p.relist()
	}
	return p.poll(ctx, true)
}

// A listTime is when Slurm gave a list. It is what a later question for changes is about. Slurm answers that by the times of its
// changes. When its clock was set back, or another slurmctld took over on a host whose clock is behind, changes have times before that of
// the list. Until the clock is there again, Slurm answers that nothing changed, whatever did.
type listTime struct {
	// updated is slurmctld's time of the list; zero: there is none, so a whole one is asked for.
	updated time.Time
	// there is when we had it, by our clock.
	there time.Time
}

const (
	// maxClockLoss is how much less time may have passed by slurmctld's clock than by ours. It has whole seconds.
	maxClockLoss = 2 * time.Second
	// clockInterval is the longest time for which an answer "unchanged" is believed without a look at slurmctld's clock.
	clockInterval = 30 * time.Second
)

// wentOn reports whether slurmctld's clock, which showed told when asked at asked, has gone on since the list as ours has.
func (t listTime) wentOn(asked, told time.Time) bool {
	return !told.Before(t.updated.Add(asked.Sub(t.there) - maxClockLoss))
}

// holds reports whether to believe Slurm that nothing changed since the list. It is false when slurmctld does not report its time.
func (t listTime) holds(ctx context.Context, client *rest.Client, clock clock.PassiveClock) bool {
	limited, cancel := context.WithTimeout(ctx, ctldTimeout)
	defer cancel()
	asked := clock.Now()
	diag, err := client.Diag(limited)
	return err == nil && t.wentOn(asked, diag.Time)
}
