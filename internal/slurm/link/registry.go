// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"sync"
)

// A Registry has the link of every cluster and owns their goroutines. It is a prometheus.Collector of their state.
type Registry struct {
	options Options
	hub     *hub
	metrics *metrics

	mu     sync.Mutex
	closed bool
	links  map[Key]*running
}

// running is a link with its goroutine.
type running struct {
	link  *Link
	stop  context.CancelFunc
	ended chan struct{}
}

// NewRegistry returns an empty registry. Close it to end its goroutines.
func NewRegistry(options Options) *Registry {
	return &Registry{options: options.withDefaults(), hub: newHub(), metrics: newMetrics(), links: map[Key]*running{}}
}

// Set makes the link of a cluster and starts it, or lets the one that exists follow a new endpoint or issuer. Doing it
// again with the same configuration costs nothing.
func (r *Registry) Set(key Key, config Config) (*Link, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errors.New("linking to " + key.String() + ": the registry is closed")
	}
	if known, ok := r.links[key]; ok {
		return known.link, known.link.Set(config)
	}
	link, err := newLink(key, config, r.options, r.hub, r.metrics)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	run := &running{link: link, stop: stop, ended: make(chan struct{})}
	r.links[key] = run
	go func() {
		defer close(run.ended)
		link.Run(ctx)
	}()
	r.hub.publish(key, "")
	return link, nil
}

// Get returns the link of a cluster.
func (r *Registry) Get(key Key) (*Link, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	run, ok := r.links[key]
	if !ok {
		return nil, false
	}
	return run.link, true
}

// All returns all links.
func (r *Registry) All() map[Key]*Link {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[Key]*Link, len(r.links))
	for key, run := range r.links {
		out[key] = run.link
	}
	return out
}

// Delete ends the link of a cluster, if there is one, and waits until it has ended. Writes under way fail with ErrClosed.
func (r *Registry) Delete(key Key) {
	r.mu.Lock()
	run, ok := r.links[key]
	delete(r.links, key)
	r.mu.Unlock()
	if !ok {
		return
	}
	run.stop()
	<-run.ended
	r.metrics.forget(key)
	r.hub.publish(key, "")
}

// Subscribe returns a subscription to the changes of all links, those to come included.
func (r *Registry) Subscribe() *Subscription { return r.hub.subscribe() }

// Start keeps the registry open until the context ends, then closes it; it makes the registry a Runnable of a manager.
func (r *Registry) Start(ctx context.Context) error {
	<-ctx.Done()
	r.Close()
	return nil
}

// Close ends all links and waits for them. Nothing can be set afterwards.
func (r *Registry) Close() {
	r.mu.Lock()
	r.closed = true
	links := r.links
	r.links = map[Key]*running{}
	r.mu.Unlock()
	for _, run := range links {
		run.stop()
	}
	for _, run := range links {
		<-run.ended
	}
}
