// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// A wake signals a part of a cache that there is something to ask for.
type wake chan struct{}

func newWake() wake { return make(wake, 1) }

// poke sends the signal.
func (w wake) poke() {
	select {
	case w <- struct{}{}:
	default: // it is asked for already, or will be
	}
}

// run polls after each poke until the context ends.
func (w wake) run(ctx context.Context, poll func(context.Context)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w:
			poll(ctx)
		}
	}
}

// wait waits until left returns no time to wait any more; that time may grow meanwhile. It is an error when the context
// ends before, or done is closed; done may be nil.
func wait(ctx context.Context, clock clock.Clock, done <-chan struct{}, left func() time.Duration) error {
	for {
		until := left()
		if until <= 0 {
			return nil
		}
		timer := clock.NewTimer(until)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-done:
			timer.Stop()
			return ErrClosed
		case <-timer.C():
		}
	}
}

// A view holds the snapshot of a cache. Reading it never blocks.
type view struct {
	clock   clock.Clock
	current atomic.Pointer[Snapshot]
	change  sync.Mutex // held while another snapshot is made of this one
}

func newView(clock clock.Clock) *view {
	v := &view{clock: clock}
	v.current.Store(&Snapshot{Trust: Stale, Since: clock.Now(), Why: "Slurm has not answered yet"})
	return v
}

// snapshot returns what is known now.
func (v *view) snapshot() *Snapshot { return v.stored().at(v.now()) }

// stored returns what is known, as it was when it became known.
func (v *view) stored() *Snapshot { return v.current.Load() }

func (v *view) now() time.Time { return v.clock.Now() }

// swap puts the snapshot that next makes of the stored one in its place; nil leaves it.
func (v *view) swap(next func(old *Snapshot) *Snapshot) {
	v.change.Lock()
	defer v.change.Unlock()
	if s := next(v.stored()); s != nil {
		v.current.Store(s)
	}
}
