// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// mostWrites is how many pods are written to at once. What is under way delays what everybody else asks of the API
	// server, the renewal of our own Lease included: with 256, a thousand cordons on two cores cost the operator its lead.
	mostWrites = 16
	// fewWrites is how many while nodes are drained or workers come up, which comes first.
	fewWrites = 1
	// firstWrites is how many if those are to be protected on whose nodes jobs may start already.
	firstWrites = 64
)

// turns limit how many pods are written to at once. Whoever waits for a turn does not wait within its reconcile, where it
// would keep a drain from being looked at: it is put on the queue again when it is its turn, and then decides anew.
type turns struct {
	mu      sync.Mutex
	held    map[types.NamespacedName]bool
	waiting []types.NamespacedName // in order, each once
	waits   map[types.NamespacedName]bool
	// wake puts a pod on the queue.
	wake func(pod types.NamespacedName)
}

// take gives a pod a turn if fewer than most have one, and otherwise notes that it waits for one. One that comes first does
// not stand in line.
func (t *turns) take(pod types.NamespacedName, most int, first bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held == nil {
		t.held, t.waits = map[types.NamespacedName]bool{}, map[types.NamespacedName]bool{}
	}
	switch {
	case t.held[pod]:
		return true
	case len(t.held) < most && len(t.waiting) == 0, first && len(t.held) < firstWrites:
		t.held[pod] = true
		return true
	case first:
		t.waiting = slices.Insert(slices.DeleteFunc(t.waiting, func(other types.NamespacedName) bool { return other == pod }), 0, pod)
		t.waits[pod] = true
	case !t.waits[pod]:
		t.waiting, t.waits[pod] = append(t.waiting, pod), true
	}
	return false
}

// end ends the turn of a pod, if it has one, and gives turns to those who wait the longest. There is always one who has a
// turn while somebody waits.
func (t *turns) end(pod types.NamespacedName, most int) {
	t.mu.Lock()
	if !t.held[pod] {
		t.mu.Unlock()
		return
	}
	delete(t.held, pod)
	var next []types.NamespacedName
	for len(t.held) < most && len(t.waiting) > 0 {
		first := t.waiting[0]
		t.waiting = t.waiting[1:]
		delete(t.waits, first)
		t.held[first] = true
		next = append(next, first)
	}
	t.mu.Unlock()
	for _, pod := range next {
		t.wake(pod)
	}
}
