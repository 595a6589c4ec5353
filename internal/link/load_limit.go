// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"slices"
	"sync"
	"time"
)

// A subject is what slurmrestd is asked about.
type subject int

const (
	aboutNodes subject = iota
	aboutJobs
	aboutDaemons
	subjects
)

// share is the reciprocal of the part of slurmrestd's time that a subject has for itself, and bucket is how much of it may
// be saved up. Together they are a twentieth of ten minutes.
//
// None can use up what another has, or a configuration on its way would keep the list of nodes from being asked for, and a
// large list the configuration. What jobs and daemons do not need goes to the nodes: jobs are seldom asked for.
func (s subject) share() time.Duration { return [subjects]time.Duration{37, 125, 200}[s] }

func (s subject) bucket() time.Duration {
	return [subjects]time.Duration{5 * time.Second, 480 * time.Millisecond, 300 * time.Millisecond}[s]
}

// A loadLimit bounds how long slurmrestd works for our questions: a token bucket for each subject, whose tokens are slurmrestd's
// time. It fills with the time that passes, and every answer takes out what slurmrestd worked for it. Questions that somebody waits
// for may be asked while there is no debt, others while a quarter of the bucket is full.
//
// So ten minutes see at most half a minute of questions, whatever is asked and by whom, and still the first ones after a
// rest are asked at once.
//
// After a change the nodes have more for a while: whoever changes a thousand nodes pays for the lists that show it. x/time/rate
// has no buckets that pass on what they do not need, and no rate that is higher for a while.
type loadLimit struct {
	mu    sync.Mutex
	left  [subjects]time.Duration
	at    time.Time // when left was right; zero: never used
	until time.Time // the nodes have more
}

const (
	// changedShare is the reciprocal of the part of slurmrestd's time that the nodes have after a change.
	changedShare = 5
	// changedInterval is how long after a change the nodes have more.
	changedInterval = 10 * time.Second
)

// changed says that somebody has changed nodes, or is about to destroy what they stand for, and waits for what they show.
func (a *loadLimit) changed(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.grow(now)
	a.until = now.Add(changedInterval)
}

// grow lets time pass. The caller holds the mutex.
func (a *loadLimit) grow(now time.Time) {
	if a.at.IsZero() {
		for s := range subjects {
			a.left[s] = s.bucket()
		}
	} else if passed := now.Sub(a.at); passed > 0 {
		a.left[aboutNodes] += max(0, min(passed, a.until.Sub(a.at))) / changedShare
		for s := subjects - 1; s >= 0; s-- { // nodes last, which get what others do not need
			a.left[s] += passed / s.share()
			over := max(0, a.left[s]-s.bucket())
			a.left[s] -= over
			a.left[aboutNodes] += over
		}
		a.left[aboutNodes] = min(a.left[aboutNodes], aboutNodes.bucket())
	}
	a.at = now
}

// take takes out what an answer cost.
func (a *loadLimit) take(now time.Time, s subject, cost time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.grow(now)
	a.left[s] -= cost
}

// wait is how long to wait until a question may be asked: one that somebody waits for, or one that nobody does.
func (a *loadLimit) wait(now time.Time, s subject, urgent bool) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.grow(now)
	needed, more := s.bucket()/4, time.Duration(0)
	if s == aboutNodes {
		more = max(0, a.until.Sub(now))
	}
	if urgent || more > 0 {
		needed = 0
	}
	missing := needed - a.left[s]
	if missing <= 0 {
		return 0
	}
	missing += time.Microsecond // what grows is rounded down
	rate := 1 / float64(s.share())
	for other := range subjects {
		if s == aboutNodes && other != aboutNodes && a.left[other] >= other.bucket() {
			rate += 1 / float64(other.share())
		}
	}
	fast := rate + 1./changedShare
	wait := time.Duration(float64(missing) / fast)
	if wait > more {
		wait = more + time.Duration((float64(missing)-float64(more)*fast)/rate)
	}
	return max(time.Microsecond, wait) // in less than that a bucket fills by nothing
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
	return d.median()
}

func (d *durations) median() time.Duration {
	sorted := d.last
	slices.Sort(sorted[:])
	return sorted[len(sorted)/2]
}
