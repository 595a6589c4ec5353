// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

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
	// Until is when more may follow, if somebody was told to wait; zero otherwise.
	Until time.Time
}

// minute is the window in which actions are counted.
const minute = time.Minute

// A purse keeps the budget: whatever 60 s are looked at, no more than the limit is in them.
type purse struct {
	mu    sync.Mutex
	spent []payment // of the last minute, oldest first
	until time.Time // somebody was told to wait until then
}

// payment is some actions at one time.
type payment struct {
	at time.Time
	n  int
}

// forget drops payments that are older than a minute, and says what is left.
func (p *purse) forget(now time.Time) int {
	p.spent = slices.DeleteFunc(p.spent, func(old payment) bool { return now.Sub(old.at) >= minute })
	sum := 0
	for _, one := range p.spent {
		sum += one.n
	}
	return sum
}

// spend grants as many of n actions as the limit leaves. When that is not all, again is when the next one may follow.
func (p *purse) spend(now time.Time, n, limit int) (granted int, again time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	spent := p.forget(now)
	granted = max(0, min(n, limit-spent))
	if granted > 0 {
		p.spent = append(p.spent, payment{now, granted})
	}
	if granted == n {
		return granted, time.Time{}
	}
	again = now.Add(minute)
	left := limit - spent - granted
	for _, one := range p.spent {
		if left += one.n; left > 0 {
			again = one.at.Add(minute)
			break
		}
	}
	if again.After(p.until) {
		p.until = again
	}
	return granted, again
}

func (p *purse) look(now time.Time, limit int) Budget {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := Budget{Limit: limit, Spent: p.forget(now)}
	if now.Before(p.until) {
		b.Until = p.until
	}
	return b
}

// leastBudget is the limit of small clusters.
const leastBudget = 20

// budget is how many destructive actions a minute may have: what the options say, or half of the nodes that Slurm listed
// when its list was last trusted, so that an error of ours cannot take a whole cluster before somebody sees it.
func (l *Link) budget() int {
	if l.options.Budget > 0 {
		return l.options.Budget
	}
	return max(leastBudget, l.snapshot.Load().trusted/2)
}

// Spend takes n destructive actions out of the budget: deletions and evictions of pods whose node Slurm has. It returns
// how many of them may be done now; when those are not all, again is when to ask for more. What is granted is spent.
func (l *Link) Spend(now time.Time, n int) (granted int, again time.Time) {
	before := l.purse.look(now, l.budget())
	granted, again = l.purse.spend(now, n, before.Limit)
	if granted < n && before.Until.IsZero() {
		l.hub.publish(l.key, "")
	}
	return granted, again
}

// Budget says how much of the budget is spent.
func (l *Link) Budget(now time.Time) Budget { return l.purse.look(now, l.budget()) }
