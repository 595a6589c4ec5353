// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"sync"
)

// mostAtOnce is how many calls of one batch are under way at a time. The API server takes no more from one client by
// default (priority and fairness), and what waits there waits as well here.
const mostAtOnce = 100

// SlowStart calls do for 0 to n-1: one, then two at a time, then four, and so on. What fails for all alike, such as a pod
// that admission refuses, so fails once and not n times: after a batch with a failure no other begins. The error joins
// those of the batch.
func SlowStart(n int, do func(i int) error) error {
	for size, from := 1, 0; from < n; size = min(2*size, mostAtOnce) {
		to := min(from+size, n)
		failures := make([]error, to-from)
		var calls sync.WaitGroup
		for i := from; i < to; i++ {
			calls.Go(func() { failures[i-from] = do(i) })
		}
		calls.Wait()
		if err := errors.Join(failures...); err != nil {
			return err
		}
		from = to
	}
	return nil
}
