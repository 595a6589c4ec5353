// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"fmt"
	"time"
)

// Poll calls check until it returns nil. When ctx ends, or after the given time, the error has what was waited for and
// what the last check returned.
func Poll(ctx context.Context, within, every time.Duration, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("not within %s", within))
	defer cancel()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		// That time is up in the middle of a check proves nothing about what was waited for.
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; last: %w", what, context.Cause(ctx), last)
		case <-ticker.C:
		}
	}
}
