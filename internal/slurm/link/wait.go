// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

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
