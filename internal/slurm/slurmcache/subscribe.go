// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// Key names a cluster: the namespace and name of its Controller.
type Key struct {
	Namespace string
	Name      string
}

// String is "namespace/name".
func (k Key) String() string { return k.Namespace + "/" + k.Name }

// A Change is a node that is new, gone or different in a cache's snapshot. With an empty Node the trust in the snapshot changed, or the
// cache came or went. With Slurmctld as Node something about the slurmctlds changed, and with Followed something about followed jobs.
type Change struct {
	Cluster Key
	Node    string
}

// A Subscription collects changes until somebody takes them. It needs no goroutine: a subscriber that is slow finds the
// same change once, however often it happened.
type Subscription struct {
	hub   *hub
	ready chan struct{}

	mu      sync.Mutex
	pending map[Change]struct{}
}

// Ready has a value when there is something to take.
func (s *Subscription) Ready() <-chan struct{} { return s.ready }

// Take returns the changes since the last Take, sorted.
func (s *Subscription) Take() []Change {
	s.mu.Lock()
	pending := s.pending
	s.pending = nil
	s.mu.Unlock()
	return slices.SortedFunc(maps.Keys(pending), func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Cluster.Namespace, b.Cluster.Namespace), cmp.Compare(a.Cluster.Name, b.Cluster.Name), cmp.Compare(a.Node, b.Node))
	})
}

// Close ends the subscription. Ready stays open and silent.
func (s *Subscription) Close() { s.hub.remove(s) }

func (s *Subscription) add(key Key, nodes []string) {
	s.mu.Lock()
	if s.pending == nil {
		s.pending = make(map[Change]struct{}, len(nodes))
	}
	for _, node := range nodes {
		s.pending[Change{key, node}] = struct{}{}
	}
	s.mu.Unlock()
	select {
	case s.ready <- struct{}{}:
	default: // it is ready already
	}
}

// A hub passes changes on to subscriptions.
type hub struct {
	mu            sync.Mutex
	subscriptions map[*Subscription]struct{}
}

func newHub() *hub { return &hub{subscriptions: map[*Subscription]struct{}{}} }

func (h *hub) subscribe() *Subscription {
	s := &Subscription{hub: h, ready: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subscriptions[s] = struct{}{}
	return s
}

func (h *hub) remove(s *Subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.subscriptions, s)
}

// publish sends nodes of a cache to all subscriptions; an empty name stands for the cache itself.
func (h *hub) publish(key Key, nodes ...string) {
	if len(nodes) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subscriptions {
		s.add(key, nodes)
	}
}
