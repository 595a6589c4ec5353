// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// minIntervalPerWorker is how long a NodeSet is left alone after it was looked at, for each worker it has. Every change of a worker
	// concerns it, and a look takes longer the more workers it has. When all of them change, that would be most of what the operator does,
	// with a write of the status each time.
	minIntervalPerWorker = 500 * time.Microsecond
	maxInterval          = time.Second
)

// pace is until when NodeSets are left alone. It may be lost.
type pace struct {
	mu    sync.Mutex
	until map[types.NamespacedName]time.Time
}

// looked notes that a NodeSet with so many workers was looked at.
func (p *pace) looked(set types.NamespacedName, workers int, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until == nil {
		p.until = map[types.NamespacedName]time.Time{}
	}
	p.until[set] = now.Add(min(maxInterval, time.Duration(workers)*minIntervalPerWorker))
}

// pause returns how much longer a NodeSet is to be left alone.
func (p *pace) pause(set types.NamespacedName, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.until[set].Sub(now)
	if left <= 0 {
		delete(p.until, set)
	}
	return left
}
