// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"sync"

	"github.com/coxswain-hpc/coxswain/internal/link"
)

// mostAsking is how many reconciles wait for the Slurm of one cluster at once. The others of the cluster come back later, and
// those of other clusters go on when it is silent.
const mostAsking = concurrency / 4

// asking counts the reconciles that wait for Slurm, by cluster.
type asking struct {
	mu sync.Mutex
	of map[link.Key]int
}

// begin says whether one more may wait; it has to end then.
func (a *asking) begin(cluster link.Key) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of[cluster] >= mostAsking {
		return false
	}
	if a.of == nil {
		a.of = map[link.Key]int{}
	}
	a.of[cluster]++
	return true
}

func (a *asking) end(cluster link.Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of[cluster]--; a.of[cluster] <= 0 {
		delete(a.of, cluster)
	}
}
