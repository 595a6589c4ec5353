// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/utils/clock"
)

// A request is one caller's share of a batch.
type request struct {
	change change
	nodes  []string
	reply  chan Failures // with room for the reply, so that nobody waits for a caller who left
}

// A batcher joins requests that say the same.
type batcher struct {
	clock    clock.Clock
	window   time.Duration
	requests chan *request
	write    func(ctx context.Context, nodes []string, c change) Failures
}

// run collects requests for a window from the first one on, then writes them, and so on until the context ends. While it
// writes, callers wait to hand in their requests; those will be the next batch.
func (b *batcher) run(ctx context.Context) {
	var first *request // opens the batch
	for {
		if first == nil {
			select {
			case <-ctx.Done():
				return
			case first = <-b.requests:
			}
		}
		batch, next := b.collect(ctx, first)
		for _, g := range batch.groups {
			g.answer(b.write(ctx, slices.Collect(maps.Keys(g.nodes)), g.change))
		}
		first = next
	}
}

// collect gathers a batch. It ends early when a request contradicts the batch, which then opens the next one: writes
// about the same node have to arrive in their order.
func (b *batcher) collect(ctx context.Context, first *request) (batch *batch, next *request) {
	batch = newBatch(first)
	timer := b.clock.NewTimer(b.window)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return batch, nil
		case <-timer.C():
			return batch, nil
		case r := <-b.requests:
			if !batch.add(r) {
				return batch, r
			}
		}
	}
}

// A group is requests that say the same.
type group struct {
	change   change
	nodes    map[string]struct{}
	requests []*request
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
		r.reply <- own
	}
}

// A batch is groups of which no two speak of the same node, in order of their first request.
type batch struct {
	groups []*group
	by     map[string]*group
	of     map[string]string
}

func newBatch(first *request) *batch {
	b := &batch{by: map[string]*group{}, of: map[string]string{}}
	b.add(first)
	return b
}

// add takes a request up, or refuses it because it says something else about a node than the batch does.
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
