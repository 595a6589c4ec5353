// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"slices"
	"time"

	"golang.org/x/time/rate"
)

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
