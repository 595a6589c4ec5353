// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"sync"
	"sync/atomic"
)

// maxInFlight is how many calls of one batch are under way at a time. The API server takes no more from one client by default (priority
// and fairness), so the rest can as well wait here.
const maxInFlight = 100

// SlowStart calls do for 0 to n-1: one, then two at a time, then four, and so on, up to maxInFlight. So a failure common to all, such
// as a pod that admission refuses, happens once and not n times: after a failure no calls begin but those of its batch. The error joins
// those that failed.
func SlowStart(n int, do func(i int) error) error {
	from := 0
	for size := 1; from < n && size < maxInFlight; size *= 2 {
		size = min(size, n-from)
		if err := atOnce(from, from+size, size, do); err != nil {
			return err
		}
		from += size
	}
	return atOnce(from, n, maxInFlight, do)
}

// atOnce calls do for from to to-1, many at a time, until one fails.
func atOnce(from, to, many int, do func(i int) error) error {
	failures := make([]error, max(0, to-from))
	var next atomic.Int64
	var failed atomic.Bool
	var calls sync.WaitGroup
	for range min(many, len(failures)) {
		calls.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(failures) || i >= many && failed.Load() {
					return
				}
				if failures[i] = do(from + i); failures[i] != nil {
					failed.Store(true)
				}
			}
		})
	}
	calls.Wait()
	return errors.Join(failures...)
}
