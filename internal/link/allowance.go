// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"slices"
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

// share is the reciprocal of the part of slurmrestd's time that a subject has for itself, and savings is how much of it may
// be saved up. Together they are a twentieth of ten minutes.
//
// None can use up what another has, or a configuration on its way would keep the list of nodes from being asked for, and a
// large list the configuration. What jobs and daemons do not need goes to the nodes: jobs are seldom asked for.
func (s subject) share() time.Duration { return [subjects]time.Duration{37, 125, 200}[s] }

func (s subject) savings() time.Duration {
	return [subjects]time.Duration{5 * time.Second, 480 * time.Millisecond, 300 * time.Millisecond}[s]
}

// An allowance is the time of slurmrestd that may still be taken. It grows with the time that passes, up to its savings, and
// every answer takes off it what slurmrestd worked for it. Questions that somebody waits for may be asked while it is not
// less than nothing, others while a quarter of those savings are there.
//
// So ten minutes see at most half a minute of questions, whatever is asked and by whom, and still the first ones after a
// rest are asked at once.
//
// While somebody waits for what the nodes show, they have more: whoever changes a thousand nodes pays for the lists that show
// it. That is the time after something was changed, so that it is over by itself.
type allowance struct {
	left  [subjects]time.Duration
	at    time.Time // when left was right; zero: never used
	until time.Time // somebody waits
}

const (
	// hurriedShare is the reciprocal of the part of slurmrestd's time that the nodes have while somebody waits.
	hurriedShare = 5
	// hurry is how long somebody waits after a change.
	hurry = 10 * time.Second
)

// hurries says that somebody waits from now on.
func (a *allowance) hurries(now time.Time) {
	a.grow(now)
	a.until = now.Add(hurry)
}

// grow lets time pass.
func (a *allowance) grow(now time.Time) {
	if a.at.IsZero() {
		for s := range subjects {
			a.left[s] = s.savings()
		}
	} else if passed := now.Sub(a.at); passed > 0 {
		a.left[aboutNodes] += max(0, min(passed, a.until.Sub(a.at))) / hurriedShare
		for s := subjects - 1; s >= 0; s-- { // nodes last, which get what others do not need
			a.left[s] += passed / s.share()
			over := max(0, a.left[s]-s.savings())
			a.left[s] -= over
			a.left[aboutNodes] += over
		}
		a.left[aboutNodes] = min(a.left[aboutNodes], aboutNodes.savings())
	}
	a.at = now
}

// take takes what an answer cost.
func (a *allowance) take(now time.Time, s subject, cost time.Duration) {
	a.grow(now)
	a.left[s] -= cost
}

// wait is how long to wait until a question may be asked: one that somebody waits for, or one that nobody does.
func (a *allowance) wait(now time.Time, s subject, urgent bool) time.Duration {
	a.grow(now)
	least, hurried := s.savings()/4, time.Duration(0)
	if s == aboutNodes {
		hurried = max(0, a.until.Sub(now))
	}
	if urgent || hurried > 0 {
		least = 0
	}
	missing := least - a.left[s]
	if missing <= 0 {
		return 0
	}
	missing += time.Microsecond // what grows is rounded down
	rate := 1 / float64(s.share())
	for other := range subjects {
		if s == aboutNodes && other != aboutNodes && a.left[other] >= other.savings() {
			rate += 1 / float64(other.share())
		}
	}
	fast := rate + 1./hurriedShare
	wait := time.Duration(float64(missing) / fast)
	if wait > hurried {
		wait = hurried + time.Duration((float64(missing)-float64(hurried)*fast)/rate)
	}
	return max(time.Microsecond, wait) // in less than that an allowance grows by nothing
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
