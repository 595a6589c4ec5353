// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// A ctldPoller asks the slurmctlds of a cluster which of them answer and what is loaded, as long as that is needed.
type ctldPoller struct {
	clock      clock.Clock
	interval   time.Duration
	connection *connection
	load       *loadLimit
	publish    func(nodes ...string)
	wake       // the slurmctlds are to be asked
	daemons    atomic.Pointer[Daemons]

	// replaced is called when the first slurmctld that answers is another one than before.
	replaced func()
	active   string

	mu       sync.Mutex
	interest *Interest // nil: nobody's
}

func newCtldPoller(options Options, connection *connection, load *loadLimit, publish func(nodes ...string)) *ctldPoller {
	p := &ctldPoller{
		clock: options.Clock, interval: options.Interval, connection: connection, load: load, publish: publish, wake: newWake(),
		replaced: func() {},
	}
	p.daemons.Store(&Daemons{Why: "slurmctld has not been asked yet"})
	return p
}

// Attend sets what a caller needs to know; it takes the place of what was needed before. Nothing is asked until then. Afterwards the
// slurmctlds are asked at once, when they come back, and according to Interest; subscribers get a Change of Slurmctld when the answer
// differs from the one before.
func (l *Cache) Attend(interest Interest) { l.ctlds.attend(interest) }

// Daemons returns the last answer of the slurmctlds.
func (l *Cache) Daemons() Daemons { return *l.ctlds.daemons.Load() }

func (p *ctldPoller) attend(interest Interest) {
	p.mu.Lock()
	daemons := *p.daemons.Load()
	settled := interest.Settled(daemons)
	if begins := p.interest == nil || p.interest.Settled(daemons); begins && !settled {
		p.load.boost(p.clock.Now(), aboutDaemons)
	}
	p.interest = &interest
	p.mu.Unlock()
	if !settled || interest.Watch {
		p.poke()
	}
}

// run asks the slurmctlds whenever somebody wants it, and as long as something is waited for or watched.
func (p *ctldPoller) run(ctx context.Context) {
	failures := 0
	for p.waitForLimit(ctx) == nil && ctx.Err() == nil {
		p.mu.Lock()
		interest := p.interest
		p.mu.Unlock()
		interval, limited := time.Duration(0), false
		if interest != nil {
			asked := p.clock.Now()
			next, err := askSlurmctlds(ctx, p.connection.get(), asked)
			if ctx.Err() != nil {
				return
			}
			failures++
			if err == nil {
				failures = 0
			}
			p.keep(next)
			interval, limited = p.next(*interest, next, failures)
		}
		p.waitForPoll(ctx, interval, limited)
	}
}

// waitForLimit waits until the slurmctlds may be asked.
func (p *ctldPoller) waitForLimit(ctx context.Context) error {
	return wait(ctx, p.clock, nil, func() time.Duration { return p.load.wait(p.clock.Now(), aboutDaemons, true) })
}

// waitForPoll waits until somebody wants a poll, and no longer than the interval if it is limited.
func (p *ctldPoller) waitForPoll(ctx context.Context, interval time.Duration, limited bool) {
	var over <-chan time.Time
	if limited {
		timer := p.clock.NewTimer(interval)
		defer timer.Stop()
		over = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-p.wake:
	case <-over:
	}
}

// unsettledInterval is the time between two polls while somebody waits for another answer.
const unsettledInterval = 500 * time.Millisecond

// next is how long not to ask after an answer, and whether to ask again at all. What failed was waiting and no work. So was an answer
// about a slurmctld that does not respond: slurmrestd waits for it, up to some seconds. If that counted, the poller would not ask for
// minutes, and not see that it is back.
func (p *ctldPoller) next(interest Interest, d Daemons, failures int) (interval time.Duration, again bool) {
	settled := interest.Settled(d)
	switch {
	case failures > 0 && interest.Watch:
		return p.interval, true
	case failures > 0:
		return pollInterval(p.interval, failures), true
	}
	interval = p.interval
	if !settled {
		interval = min(unsettledInterval, interval)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	if !slices.ContainsFunc(d.Controllers, func(c rest.Controller) bool { return !c.Responding }) {
		p.load.take(now, aboutDaemons, p.connection.lastWork(getPing)+p.connection.lastWork(getConf))
	}
	return max(interval, p.load.wait(now, aboutDaemons, !settled)), !settled || interest.Watch
}

// keep keeps an answer and publishes what is new to subscribers.
func (p *ctldPoller) keep(next Daemons) {
	old := p.daemons.Swap(&next)
	if i := slices.IndexFunc(next.Controllers, func(c rest.Controller) bool { return c.Responding }); i >= 0 {
		if active := next.Controllers[i].Hostname; active != p.active {
			p.replaced()
			p.active = active
		}
	}
	if !old.equal(next) {
		p.publish(Slurmctld)
	}
}
