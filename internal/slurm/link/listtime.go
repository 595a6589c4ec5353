// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"time"

	"k8s.io/utils/clock"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// A listTime is when Slurm gave a list. It is what a later question for changes is about. Slurm answers that by the times of its
// changes. When its clock was set back, or another slurmctld took over on a host whose clock is behind, changes have times before that of
// the list. Until the clock is there again, Slurm answers that nothing changed, whatever did.
type listTime struct {
	// updated is slurmctld's time of the list; zero: there is none, so a whole one is asked for.
	updated time.Time
	// there is when we had it, by our clock.
	there time.Time
}

const (
	// maxClockLoss is how much less time may have passed by slurmctld's clock than by ours. It has whole seconds.
	maxClockLoss = 2 * time.Second
	// clockInterval is the longest time for which an answer "unchanged" is believed without a look at slurmctld's clock.
	clockInterval = 30 * time.Second
)

// wentOn reports whether slurmctld's clock, which showed told when asked at asked, has gone on since the list as ours has.
func (t listTime) wentOn(asked, told time.Time) bool {
	return !told.Before(t.updated.Add(asked.Sub(t.there) - maxClockLoss))
}

// holds reports whether to believe Slurm that nothing changed since the list. It is false when slurmctld does not report its time.
func (t listTime) holds(ctx context.Context, client *rest.Client, clock clock.PassiveClock) bool {
	limited, cancel := context.WithTimeout(ctx, ctldTimeout)
	defer cancel()
	asked := clock.Now()
	diag, err := client.Diag(limited)
	return err == nil && t.wentOn(asked, diag.Time)
}
