// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

// A subject is what slurmrestd is asked about.
type subject int

const (
	aboutNodes subject = iota
	aboutJobs
	aboutDaemons
	// aboutRecords is what an exporter shows of jobs, and aboutController what it shows of slurmctld.
	aboutRecords
	aboutController
	subjects
)

// inverseRate is the reciprocal of the part of slurmrestd's time that a subject has for itself: the rate at which its bucket
// fills. Burst is how much of that time its bucket holds. Together those of the first three are a twentieth of ten minutes. Where
// there is an exporter, jobs have a hundredth in addition, and slurmctld a five-hundredth.
//
// No subject can use up what another has. Otherwise a configuration on its way would keep the list of nodes from being asked
// for, and a large list the configuration. What jobs and slurmctlds do not need goes to the nodes: jobs are seldom asked for.
func (s subject) inverseRate() time.Duration {
	return [subjects]time.Duration{37, 125, 200, 100, 500}[s]
}

func (s subject) burst() time.Duration {
	return [subjects]time.Duration{5 * time.Second, 480 * time.Millisecond, 300 * time.Millisecond, 600 * time.Millisecond, 100 * time.Millisecond}[s]
}

// boost is the reciprocal of the part of slurmrestd's time that a subject has for a while, and for how long, after a caller has begun
// to wait for an answer about it.
func (s subject) boost() (inverseRate, timeout time.Duration) {
	if s == aboutNodes {
		return 5, boostTimeout
	}
	return 20, waiterBoostTimeout
}

const (
	// boostTimeout is how long after a change the bucket of the nodes fills faster.
	boostTimeout = 10 * time.Second
	// waiterBoostTimeout is how long the bucket of the jobs, or of the slurmctlds, fills faster after somebody has begun to wait for them.
	waiterBoostTimeout = time.Minute
)

// passesOn reports whether the nodes get what a subject does not need.
func (s subject) passesOn() bool { return s == aboutJobs || s == aboutDaemons }

// A loadLimit bounds how long slurmrestd works for our requests. It has a token bucket for each subject, whose tokens are
// slurmrestd's time. A bucket fills with the time that passes, and every answer takes out what slurmrestd worked for it. A request
// that somebody waits for may be sent while its bucket is not in debt. Any other may be sent while a quarter of the burst is there.
//
// So requests take at most half a minute of ten minutes, whatever is asked and by whom, and those for an exporter eight seconds more.
// The first ones after a rest are still sent at once.
//
// When somebody begins to wait, the bucket of the subject fills faster for a while; that of the jobs until they are known. Without that a
// list of jobs that takes a busy slurmrestd a second would delay the next one by a minute, and with it the end of a worker.
//
// The limiter of golang.org/x/time/rate has no buckets that pass on what they do not need, and no rate that is higher for a while.
type loadLimit struct {
	mu    sync.Mutex
	left  [subjects]time.Duration
	at    time.Time           // when left was right; zero: never used
	until [subjects]time.Time // the boost of each ends
}

// boost fills the bucket of a subject faster from now on. Somebody has changed nodes, or is about to destroy what they stand for, and
// waits for what they show; or has begun to wait for jobs, or for slurmctlds.
func (l *loadLimit) boost(now time.Time, s subject) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grow(now)
	_, timeout := s.boost()
	l.until[s] = now.Add(timeout)
}

// grow fills the buckets for the time that has passed. The caller holds the mutex.
func (l *loadLimit) grow(now time.Time) {
	if l.at.IsZero() {
		for s := range subjects {
			l.left[s] = s.burst()
		}
	} else if passed := now.Sub(l.at); passed > 0 {
		for s := subjects - 1; s >= 0; s-- { // nodes last, which get what others do not need
			boost, _ := s.boost()
			boosted := max(0, min(passed, l.until[s].Sub(l.at)))
			l.left[s] = min(l.left[s]+boosted/boost, s.burst()) // which is for itself alone
			l.left[s] += passed / s.inverseRate()
			over := max(0, l.left[s]-s.burst())
			l.left[s] -= over
			if s.passesOn() {
				l.left[aboutNodes] += over
			}
		}
		l.left[aboutNodes] = min(l.left[aboutNodes], aboutNodes.burst())
	}
	l.at = now
}

// take takes out what an answer cost.
func (l *loadLimit) take(now time.Time, s subject, cost time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grow(now)
	l.left[s] -= cost
}

// wait is how long to wait until a request may be sent. Somebody waits for an urgent one.
func (l *loadLimit) wait(now time.Time, s subject, urgent bool) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grow(now)
	needed, boosted := s.burst()/4, max(0, l.until[s].Sub(now))
	if urgent || boosted > 0 {
		needed = 0
	}
	missing := needed - l.left[s]
	if missing <= 0 {
		return 0
	}
	missing += time.Microsecond // what grows is rounded down
	rate := 1 / float64(s.inverseRate())
	for other := range subjects {
		if s == aboutNodes && other.passesOn() && l.left[other] >= other.burst() {
			rate += 1 / float64(other.inverseRate())
		}
	}
	boost, _ := s.boost()
	fast := rate + 1/float64(boost)
	wait := time.Duration(float64(missing) / fast)
	if wait > boosted {
		wait = boosted + time.Duration((float64(missing)-float64(boosted)*fast)/rate)
	}
	return max(time.Microsecond, wait) // in less than that a bucket fills by nothing
}

// A listLimit keeps long answers apart while one follows the other. In a rolling update each list lets the next writes follow:
// a thousand workers were updated with 338 lists of 2.7 MB within 48 s. After a rest some are asked for at once.
type listLimit struct{ limiter *rate.Limiter }

const (
	// minListInterval is the time between two long answers when there have been more than maxListBurst.
	minListInterval = time.Second
	// maxListBurst is how many long answers may follow one another at once after a rest.
	maxListBurst = 6
)

func newListLimit() listLimit {
	return listLimit{rate.NewLimiter(rate.Every(minListInterval), maxListBurst)}
}

// took counts an answer. Only the answer shows whether it was a long one, so it is counted afterwards.
func (s listLimit) took(now time.Time) { s.limiter.ReserveN(now, 1) }

// wait is how long to wait until there may be another.
func (s listLimit) wait(now time.Time) time.Duration {
	missing := 1 - s.limiter.TokensAt(now)
	if missing <= 0 {
		return 0
	}
	return time.Duration(missing*float64(minListInterval)) + time.Microsecond // tokens are rounded
}

// durations are how long the last lists took, in turn.
type durations struct {
	last [5]time.Duration
	next int
}

func (d *durations) add(took time.Duration) {
	d.last[d.next] = took
	d.next = (d.next + 1) % len(d.last)
}

// median is what most lists take. One or two may have waited for a slurmctld that was starting, for up to 17 s.
func (d *durations) median() time.Duration {
	sorted := d.last
	slices.Sort(sorted[:])
	return sorted[len(sorted)/2]
}

const (
	// minRetryDelay is how long to wait before a read is tried again, at least; at most twice as long.
	minRetryDelay = 100 * time.Millisecond
	// minRetryInterval is how often a cache may try a read again.
	minRetryInterval = 10 * time.Second
)

// A retryLimit lets a read without an answer be tried again at once. So a connection that broke, as when slurmrestd is replaced, is not
// taken for the loss of Slurm. It does so only once in a while: reads that go on failing wait for the next poll.
type retryLimit struct {
	clock   clock.Clock
	limiter *rate.Limiter
}

func newRetryLimit(clock clock.Clock) *retryLimit {
	return &retryLimit{clock: clock, limiter: rate.NewLimiter(rate.Every(minRetryInterval), 1)}
}

// allow is rest.Options.Retry.
func (r *retryLimit) allow(ctx context.Context, attempts int) bool {
	if attempts != 1 || !r.limiter.AllowN(r.clock.Now(), 1) {
		return false
	}
	// Caches of several clusters may lose their connections at the same time.
	timer := r.clock.NewTimer(minRetryDelay + rand.N(minRetryDelay)) //nolint:gosec // nobody gains by guessing it
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}
