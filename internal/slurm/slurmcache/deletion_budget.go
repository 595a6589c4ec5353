// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"slices"
	"sync"
	"time"
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
