// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// writes remembers when a worker's Slurm node was last changed by us. What Slurm said before may be no longer true: a
// node that was drained, undrained and is to be drained again still shows as drained, and jobs may run on it.
type writes struct {
	mu   sync.Mutex
	last map[types.NamespacedName]time.Time
}

// wrote notes a change, whether it succeeded or not: a reply may have been lost.
func (w *writes) wrote(pod types.NamespacedName, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		w.last = map[types.NamespacedName]time.Time{}
	}
	w.last[pod] = now
}

// seen says whether a view that was asked for at taken shows the last change.
func (w *writes) seen(pod types.NamespacedName, taken time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !taken.Before(w.last[pod])
}

// forget drops what is known of a pod that is gone. Its successor drains and undrains anew.
func (w *writes) forget(pod types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.last, pod)
}
