// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-hpc/coxswain/internal/reconcile/perkey"
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
	until perkey.Memory[types.NamespacedName, time.Time]
}

// looked notes that a NodeSet with so many workers was looked at.
func (p *pace) looked(set types.NamespacedName, workers int, now time.Time) {
	p.until.Set(set, now.Add(min(maxInterval, time.Duration(workers)*minIntervalPerWorker)))
}

// pause returns how much longer a NodeSet is to be left alone.
func (p *pace) pause(set types.NamespacedName, now time.Time) (left time.Duration) {
	p.until.Change(set, func(until *time.Time) bool { left = until.Sub(now); return left > 0 })
	return left
}
