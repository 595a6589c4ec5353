// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"time"

	"golang.org/x/time/rate"
)

// A listLimit keeps long answers apart while one follows the other, as in a rolling update, where each list lets the next
// writes follow: a thousand workers were updated with 338 lists of 2.7 MB within 48 s. After a rest some are asked for at once.
type listLimit struct{ limiter *rate.Limiter }

const (
	// listInterval is the time between two when there have been more than listBurst.
	listInterval = time.Second
	listBurst    = 6
)

func newListLimit() listLimit { return listLimit{rate.NewLimiter(rate.Every(listInterval), listBurst)} }

// took notes an answer.
func (s listLimit) took(now time.Time) { s.limiter.ReserveN(now, 1) }

// wait is how long to wait until there may be another.
func (s listLimit) wait(now time.Time) time.Duration {
	missing := 1 - s.limiter.TokensAt(now)
	if missing <= 0 {
		return 0
	}
	return time.Duration(missing*float64(listInterval)) + time.Microsecond // tokens are rounded
}
