// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// Slurmctld is the Node of a Change that says that something else is known of the slurmctlds. No node has that name.
const Slurmctld = "/slurmctld"

// Daemons is what the slurmctlds of a cluster said last.
type Daemons struct {
	// Asked is when they were asked, by the link's clock; zero when they never were.
	Asked time.Time
	// Controllers are all slurmctlds, the primary first, as slurmrestd reaches them. Nil while slurmrestd does not answer.
	Controllers []rest.Controller
	// Release is that of slurmctld where it tells it, else that of slurmrestd; empty while nobody answers.
	Release string
	// Parameters are the SlurmctldParameters that slurmctld has loaded, if Loaded says that they are known.
	Parameters []string
	Loaded     bool
	// Why says why Parameters are not known, in one line.
	Why string
}

// equal compares all but the time.
func (d Daemons) equal(other Daemons) bool {
	return slices.Equal(d.Controllers, other.Controllers) && d.Release == other.Release && d.Loaded == other.Loaded &&
		slices.Equal(d.Parameters, other.Parameters) && d.Why == other.Why
}

// Interest is what somebody needs to know of the slurmctlds.
type Interest struct {
	// Settled says of an answer that nothing else is waited for. Until then slurmctld is asked twice a second.
	Settled func(Daemons) bool
	// Watch goes on asking who answers, in the rhythm of the link, for a cluster with backups.
	Watch bool
}

// Attend says what somebody needs to know; it takes the place of what was needed before. Nothing is asked until then.
// Afterwards the slurmctlds are asked at once, when they come back, and as Interest says; subscribers are told of a Change
// of Slurmctld when the answer is another one than before.
func (l *Link) Attend(interest Interest) {
	l.mu.Lock()
	l.interest = &interest
	settled := interest.Settled(*l.daemons.Load())
	l.mu.Unlock()
	if !settled || interest.Watch {
		l.remind()
	}
}

// Daemons returns what the slurmctlds said last.
func (l *Link) Daemons() Daemons { return *l.daemons.Load() }

// remind makes the link ask the slurmctlds soon.
func (l *Link) remind() {
	select {
	case l.reminder <- struct{}{}:
	default: // it will anyway
	}
}

// attend asks the slurmctlds whenever it is reminded to, and as long as something is waited for or watched.
func (l *Link) attend(ctx context.Context) {
	failures := 0
	for l.afford(ctx, aboutDaemons) == nil && ctx.Err() == nil {
		l.mu.Lock()
		client, interest := l.client, l.interest
		l.mu.Unlock()
		wait, wanted := time.Duration(0), false
		if interest != nil {
			asked := l.options.Clock.Now()
			next, err := ask(ctx, client, asked)
			if ctx.Err() != nil {
				return
			}
			failures++
			if err == nil {
				failures = 0
			}
			l.learn(next)
			wait, wanted = l.recess(*interest, next, failures, l.options.Clock.Since(asked))
		}
		l.rest(ctx, wait, wanted)
	}
}

// rest waits for a reminder, and no longer than the recess if there is one.
func (l *Link) rest(ctx context.Context, recess time.Duration, limited bool) {
	var over <-chan time.Time
	if limited {
		timer := l.options.Clock.NewTimer(recess)
		defer timer.Stop()
		over = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-l.reminder:
	case <-over:
	}
}

// recess is how long not to ask after an answer that took so long, and whether to ask again at all. What failed was waiting
// and no work.
func (l *Link) recess(interest Interest, d Daemons, failures int, took time.Duration) (time.Duration, bool) {
	const often = 500 * time.Millisecond
	settled := interest.Settled(d)
	switch {
	case failures > 0 && interest.Watch:
		return l.options.Interval, true
	case failures > 0:
		return rhythm(l.options.Interval, failures), true
	}
	pause := l.options.Interval
	if !settled {
		pause = min(often, pause)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.options.Clock.Now()
	l.may.take(now, aboutDaemons, l.talks.add(took))
	return max(pause, l.may.wait(now, aboutDaemons, !settled)), !settled || interest.Watch
}

// learn keeps an answer and tells subscribers what is new.
func (l *Link) learn(next Daemons) {
	old := l.daemons.Swap(&next)
	if !old.equal(next) {
		l.hub.publish(l.key, Slurmctld)
	}
}

// ask pings the slurmctlds and asks the active one what it has loaded. The error says that nobody knows.
func ask(ctx context.Context, client *rest.Client, now time.Time) (Daemons, error) {
	const patience = 10 * time.Second
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	d := Daemons{Asked: now}
	controllers, meta, err := client.Controllers(limited)
	if err != nil {
		d.Why = "slurmrestd does not answer"
		return d, err
	}
	d.Controllers, d.Release = controllers, meta.Release
	if !slices.ContainsFunc(controllers, func(c rest.Controller) bool { return c.Responding }) {
		d.Why = "no slurmctld answers"
		return d, errors.New(d.Why)
	}
	conf, err := client.Conf(limited)
	switch {
	case errors.Is(err, rest.Refused):
		d.Why = "slurmrestd " + meta.Release + " does not tell what slurmctld has loaded"
		return d, nil
	case err != nil:
		d.Why = "slurmctld does not say what it has loaded"
		return d, err
	}
	d.Release, d.Parameters, d.Loaded = cmp.Or(conf.Release, d.Release), conf.SlurmctldParameters, true
	return d, nil
}
