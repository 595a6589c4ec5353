// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import "context"

// A wake signals a part of a link that there is something to ask for.
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
