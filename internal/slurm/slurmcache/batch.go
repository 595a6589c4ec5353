// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/utils/clock"
)

// A request is one caller's share of a batch.
type request struct {
	change change
	nodes  []string
	// reply is called once, and does not block.
	reply func(Failures)
	// deadline is when the write must have left; later nobody wants it; zero for none.
	deadline time.Time
	// caller is the span of the caller, where writes are traced.
	caller trace.SpanContext
	// abandoned is true once the caller has gone, so that nobody wants the write any more.
	abandoned atomic.Bool
}

// A batcher joins requests for the same change.
type batcher struct {
	clock  clock.Clock
	window time.Duration
	write  func(ctx context.Context, nodes []string, c change) Failures
	// held returns why some nodes are left as they are. It is called right before a write.
	held func(ctx context.Context, nodes []string, c change) Failures
	// wrote is called after each batch.
	wrote func()
	// traced begins the span of a write; nil makes none.
	traced tracing
	more   chan struct{} // there is something in the queue

	mu     sync.Mutex
	queue  []*request // in order of arrival
	closed bool
	ended  time.Time // when the last write ended
}

// enqueue puts a request into the queue, unless the batcher has ended.
func (b *batcher) enqueue(r *request) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.queue = append(b.queue, r)
	b.signal()
	return true
}

// waiting reports whether the queue has a request of a kind.
func (b *batcher) waiting(kind func(change) bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.queue, func(r *request) bool { return kind(r.change) })
}

func (b *batcher) signal() {
	select {
	case b.more <- struct{}{}:
	default: // it is woken already
	}
}

// maxWindows bounds how far the window grows, in windows.
const maxWindows = 6

// run collects requests for a window from the first one on, then writes them, and so on until the context ends. Those that come while
// it writes will be the next batch. While requests keep coming, the window doubles up to maxWindows. Cordoning a thousand nodes takes
// seconds. A busy machine shows them to us in bursts, between which less time passes than the longest window.
func (b *batcher) run(ctx context.Context) {
	defer b.end()
	window := b.window
	for {
		empty := b.clock.Now()
		select {
		case <-ctx.Done():
			return
		case <-b.more:
		}
		if b.clock.Since(empty) > maxWindows*b.window {
			window = b.window
		}
		timer := b.clock.NewTimer(window)
		window = min(2*window, maxWindows*b.window)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
		batch := b.take()
		for _, g := range batch.groups {
			b.writeGroup(ctx, g)
		}
		b.wrote()
	}
}

// writeGroup writes the change of a group, but for requests whose deadline has passed.
func (b *batcher) writeGroup(ctx context.Context, g *group) {
	failures := b.held(ctx, slices.Collect(maps.Keys(g.nodes)), g.change)
	now := b.clock.Now()
	deadline := g.drop(now)
	if len(g.requests) == 0 {
		return
	}
	if !deadline.IsZero() {
		// A call without an answer is given up, since it might still arrive when nobody expects it any more.
		limited, cancel := context.WithTimeout(ctx, deadline.Sub(now)+callTimeout)
		defer cancel()
		ctx = limited
	}
	if b.traced != nil {
		var end func()
		ctx, end = b.traced(ctx, g.callers())
		defer end()
	}
	nodes := slices.DeleteFunc(slices.Collect(maps.Keys(g.nodes)), func(name string) bool { return failures[name] != nil })
	if len(nodes) > 0 {
		maps.Copy(failures, b.write(ctx, nodes, g.change))
	}
	b.mu.Lock()
	b.ended = b.clock.Now()
	b.mu.Unlock()
	g.answer(failures)
}

// take makes a batch of the queue, up to a request that contradicts it: writes about the same node have to arrive in their
// order.
func (b *batcher) take() *batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := newBatch()
	for i, r := range b.queue {
		if !r.abandoned.Load() && !out.add(r) {
			b.queue = slices.Clone(b.queue[i:])
			b.signal()
			return out
		}
	}
	b.queue = nil
	return out
}

// end answers all callers that wait.
func (b *batcher) end() {
	b.mu.Lock()
	queue := b.queue
	b.queue, b.closed = nil, true
	b.mu.Unlock()
	for _, r := range queue {
		r.reply(all(r.nodes, ErrClosed))
	}
}

// A group is requests for the same change.
type group struct {
	change   change
	nodes    map[string]struct{}
	requests []*request
}

// drop answers the requests whose deadline has passed, and returns the deadline of the others; zero for none.
func (g *group) drop(now time.Time) (deadline time.Time) {
	requests := g.requests
	g.requests, g.nodes = nil, map[string]struct{}{}
	for _, r := range requests {
		if !r.deadline.IsZero() && now.After(r.deadline) {
			r.reply(all(r.nodes, ErrLate))
			continue
		}
		if !r.deadline.IsZero() && (deadline.IsZero() || r.deadline.Before(deadline)) {
			deadline = r.deadline
		}
		g.requests = append(g.requests, r)
		for _, name := range r.nodes {
			g.nodes[name] = struct{}{}
		}
	}
	return deadline
}

// answer gives every request its own failures.
func (g *group) answer(failures Failures) {
	for _, r := range g.requests {
		own := Failures{}
		for _, name := range r.nodes {
			if err, failed := failures[name]; failed {
				own[name] = err
			}
		}
		r.reply(own)
	}
}

// A batch is groups of which no two have the same node, in order of their first request.
type batch struct {
	groups []*group
	by     map[string]*group
	of     map[string]string
}

func newBatch() *batch { return &batch{by: map[string]*group{}, of: map[string]string{}} }

// add takes a request up, or refuses it because the batch has another change of one of its nodes.
func (b *batch) add(r *request) bool {
	for _, name := range r.nodes {
		if other, known := b.of[name]; known && other != r.change.key {
			return false
		}
	}
	g := b.by[r.change.key]
	if g == nil {
		g = &group{change: r.change, nodes: map[string]struct{}{}}
		b.by[r.change.key] = g
		b.groups = append(b.groups, g)
	}
	for _, name := range r.nodes {
		b.of[name] = r.change.key
		g.nodes[name] = struct{}{}
	}
	g.requests = append(g.requests, r)
	return true
}
