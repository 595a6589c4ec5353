// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// Budget is how many destructive actions a cluster may see.
type Budget struct {
	// Limit is how many there may be within a minute, Spent how many there were in the last one.
	Limit int
	Spent int
	// Until is when more may follow, if a caller has to wait; zero otherwise.
	Until time.Time
}

// deletionBudgetInterval is the window in which actions are counted.
const deletionBudgetInterval = time.Minute

// A deletionBudget is a sliding window: no 60 s have more actions than the limit. A token bucket would let twice as many through around
// the moment at which it is full.
type deletionBudget struct {
	// limit is that of the options; 0 follows the number of nodes.
	limit int
	view  *view

	mu    sync.Mutex
	spent []spending // of the last minute, oldest first
	until time.Time  // a caller has to wait until then
}

// spending is some actions at one time.
type spending struct {
	at time.Time
	n  int
}

// drop drops actions that are older than the window, and returns how many are left.
func (b *deletionBudget) drop(now time.Time) int {
	b.spent = slices.DeleteFunc(b.spent, func(old spending) bool { return now.Sub(old.at) >= deletionBudgetInterval })
	sum := 0
	for _, one := range b.spent {
		sum += one.n
	}
	return sum
}

// spend grants as many of n actions as the limit leaves. When those are not all, again is when the next one may follow.
func (b *deletionBudget) spend(now time.Time, n, limit int) (granted int, again time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	spent := b.drop(now)
	granted = max(0, min(n, limit-spent))
	if granted > 0 {
		b.spent = append(b.spent, spending{now, granted})
	}
	if granted == n {
		return granted, time.Time{}
	}
	again = now.Add(deletionBudgetInterval)
	left := limit - spent - granted
	for _, one := range b.spent {
		if left += one.n; left > 0 {
			again = one.at.Add(deletionBudgetInterval)
			break
		}
	}
	if again.After(b.until) {
		b.until = again
	}
	return granted, again
}

// look returns how much is spent.
func (b *deletionBudget) look(now time.Time) Budget {
	limit := b.max()
	b.mu.Lock()
	defer b.mu.Unlock()
	out := Budget{Limit: limit, Spent: b.drop(now)}
	if now.Before(b.until) {
		out.Until = b.until
	}
	return out
}

// minDeletionBudget is the limit of small clusters.
const minDeletionBudget = 20

// max is how many destructive actions a minute may have: by the options, or half of the nodes that Slurm listed when its list was last
// trusted. So an error of ours cannot take a whole cluster before somebody sees it.
func (b *deletionBudget) max() int {
	if b.limit > 0 {
		return b.limit
	}
	return max(minDeletionBudget, b.view.stored().trusted/2)
}

// Spend takes n destructive actions out of the budget: deletions and evictions of pods whose node Slurm has. It returns
// how many of them may be done now; when those are not all, again is when to ask for more. Granted actions are spent.
func (l *Cache) Spend(now time.Time, n int) (granted int, again time.Time) {
	before := l.deletions.look(now)
	granted, again = l.deletions.spend(now, n, before.Limit)
	if granted < n && before.Until.IsZero() {
		l.hub.publish(l.key, "")
	}
	return granted, again
}

// Budget returns how much of the budget is spent.
func (l *Cache) Budget(now time.Time) Budget { return l.deletions.look(now) }

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
