// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"sync"

	"github.com/coxswain-hpc/coxswain/internal/link"
)

// maxConfirmations is how many reconciles wait for the Slurm of one cluster at once. The others of the cluster come back later, and those
// of other clusters go on when it is silent.
const maxConfirmations = concurrency / 4

// confirmations counts the reconciles that wait for Slurm to confirm a deletion, by cluster.
type confirmations struct {
	mu sync.Mutex
	of map[link.Key]int
}

// begin reports whether one more may wait. It has to call end then.
func (c *confirmations) begin(cluster link.Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[cluster] >= maxConfirmations {
		return false
	}
	if c.of == nil {
		c.of = map[link.Key]int{}
	}
	c.of[cluster]++
	return true
}

func (c *confirmations) end(cluster link.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[cluster]--; c.of[cluster] <= 0 {
		delete(c.of, cluster)
	}
}
