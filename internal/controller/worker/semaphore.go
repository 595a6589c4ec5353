// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// maxWrites is how many pods are written to at once. Writes under way delay all other requests to the API server, the renewal of our own
	// Lease included: with 256, a thousand cordons on two cores cost the operator its lead.
	maxWrites = 16
	// maxWritesWhileDraining is how many while nodes are drained or workers come up, which comes first.
	maxWritesWhileDraining = 1
	// maxFirstWrites is how many are written to at once if pods have to be protected on whose nodes jobs may start already.
	maxFirstWrites = 64
)

// semaphore limits how many pods are written to at once. A pod waits outside of its reconcile, where it would keep a drain from being
// looked at: it is put on the work queue when it gets its permit, and is decided about anew.
type semaphore struct {
	mu      sync.Mutex
	held    map[types.NamespacedName]bool
	waiting []types.NamespacedName // in order, each once
	waits   map[types.NamespacedName]bool
	// wake puts a pod on the queue.
	wake func(pod types.NamespacedName)
}

// take gives a pod a permit if fewer than limit pods have one. Otherwise the pod waits in a queue. One that comes first goes to the
// head of the queue.
func (s *semaphore) take(pod types.NamespacedName, limit int, first bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held, s.waits = map[types.NamespacedName]bool{}, map[types.NamespacedName]bool{}
	}
	switch {
	case s.held[pod]:
		return true
	case len(s.held) < limit && len(s.waiting) == 0, first && len(s.held) < maxFirstWrites:
		s.held[pod] = true
		return true
	case first:
		s.waiting = slices.Insert(slices.DeleteFunc(s.waiting, func(other types.NamespacedName) bool { return other == pod }), 0, pod)
		s.waits[pod] = true
	case !s.waits[pod]:
		s.waiting, s.waits[pod] = append(s.waiting, pod), true
	}
	return false
}

// end takes the permit of a pod back, if it has one, and gives it to the pod that has waited longest. While a pod waits, some pod has a
// permit.
func (s *semaphore) end(pod types.NamespacedName, limit int) {
	s.mu.Lock()
	if !s.held[pod] {
		s.mu.Unlock()
		return
	}
	delete(s.held, pod)
	var next []types.NamespacedName
	for len(s.held) < limit && len(s.waiting) > 0 {
		first := s.waiting[0]
		s.waiting = s.waiting[1:]
		delete(s.waits, first)
		s.held[first] = true
		next = append(next, first)
	}
	s.mu.Unlock()
	for _, pod := range next {
		s.wake(pod)
	}
}
