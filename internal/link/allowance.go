// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"slices"
	"time"
)

// Questions take at most a twentieth of slurmrestd's time, whatever is asked and by whom. The reciprocals of the parts for
// each kind: together they leave a little for what was saved up. None can use up what another has, or a configuration on its
// way would keep the list of nodes from being asked for, and a large list the configuration.
const (
	nodeShare   = 33
	jobShare    = 110
	daemonShare = 200
)

// An allowance is the time of slurmrestd that may still be taken. It grows with the time that passes, up to what a minute
// gives, and every answer takes off it what slurmrestd worked for it. Questions that somebody waits for may be asked while
// it is not less than nothing, others while half of those savings are there.
//
// So ten minutes see at most half a minute of questions, whatever is asked and by whom, and still the first ones after a
// rest are asked at once.
type allowance struct {
	share time.Duration // the reciprocal of the part of the time
	left  time.Duration
	at    time.Time // when left was right; zero: never used
}

// grow lets time pass.
func (a *allowance) grow(now time.Time) {
	savings := time.Minute / a.share
	switch {
	case a.at.IsZero():
		a.left = savings
	case now.After(a.at):
		a.left = min(savings, a.left+now.Sub(a.at)/a.share)
	}
	a.at = now
}

// take takes what an answer cost.
func (a *allowance) take(now time.Time, cost time.Duration) {
	a.grow(now)
	a.left -= cost
}

// wait is how long to wait until a question may be asked: one that somebody waits for, or one that nobody does.
func (a *allowance) wait(now time.Time, urgent bool) time.Duration {
	a.grow(now)
	least := time.Minute / a.share / 2
	if urgent {
		least = 0
	}
	return max(0, least-a.left) * a.share
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
