// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"sync"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
)

// nodes counts the nodes of a hostlist.
func nodes(t *testing.T, list string) int {
	t.Helper()
	names, err := hostlist.Expand(list, 100000)
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// all does something to every worker, sixteen at a time.
func (b *bench) all(do func(name string)) {
	names := make(chan string)
	var running sync.WaitGroup
	for range 16 {
		running.Go(func() {
			for name := range names {
				do(name)
			}
		})
	}
	for i := range b.size {
		names <- fmt.Sprintf("w-%d", i)
	}
	close(names)
	running.Wait()
}
