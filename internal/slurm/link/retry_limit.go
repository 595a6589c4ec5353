// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

const (
	// minRetryDelay is how long to wait before a read is tried again, at least; at most twice as long.
	minRetryDelay = 100 * time.Millisecond
	// minRetryInterval is how often a link may try a read again.
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
	// Links to several clusters may lose their connections at the same time.
	timer := r.clock.NewTimer(minRetryDelay + rand.N(minRetryDelay)) //nolint:gosec // nobody gains by guessing it
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}
