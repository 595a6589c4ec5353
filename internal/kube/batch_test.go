// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/kube"
)

func TestSlowStart(t *testing.T) {
	for _, tt := range []struct {
		name               string
		n, failing, called int
	}{
		{"nothing to do is nothing done", 0, -1, 0},
		{"everything is done once", 1000, -1, 1000},
		{"what fails for all fails once", 1000, 0, 1},
		{"after a batch with a failure no other begins", 1000, 2, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var mu sync.Mutex
			called := map[int]int{}
			err := kube.SlowStart(tt.n, func(i int) error {
				mu.Lock()
				defer mu.Unlock()
				called[i]++
				if i == tt.failing {
					return errors.New("no")
				}
				return nil
			})
			if (err != nil) != (tt.failing >= 0) || len(called) != tt.called {
				t.Errorf("%d were called, want %d; the error is %v", len(called), tt.called, err)
			}
			for i, times := range called {
				if times != 1 {
					t.Errorf("%d was called %d times", i, times)
				}
			}
		})
	}
}
