// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// A collector makes one part of the text, and keeps the last one.
type collector struct {
	name    string
	collect func(ctx context.Context, last *text) (part *text, taken time.Time, err error)
	free    chan struct{} // has a value for each collection that may begin

	mu sync.Mutex
	// part is the last text, and taken when Slurm was asked for it.
	part  *text
	taken time.Time
	err   error
	// What has happened so far, and how long the last collection took.
	attempts, failures, skipped int
	took                        time.Duration
	dropped                     map[string]int
}

func newCollector(name string, inflight int, collect func(context.Context, *text) (*text, time.Time, error)) *collector {
	c := &collector{name: name, collect: collect, free: make(chan struct{}, max(1, inflight)), dropped: map[string]int{}}
	for range cap(c.free) {
		c.free <- struct{}{}
	}
	return c
}

// begin takes a place among the collections that may run, and reports whether there was one.
func (c *collector) begin() (release func(), free bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.free:
		c.attempts++
		return func() { c.free <- struct{}{} }, true
	default:
		c.skipped++
		return nil, false
	}
}

// inflight returns how many collections run.
func (c *collector) inflight() int { return cap(c.free) - len(c.free) }

// end records what became of a collection, and reports whether that is news: the first failure after a success, or the reverse. A text that
// is older than the last one is of no use.
func (c *collector) end(part *text, taken time.Time, took time.Duration, err error) (news bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	news = (err == nil) != (c.err == nil)
	c.err, c.took = err, took
	if err != nil {
		c.failures++
	}
	if part != nil && !taken.Before(c.taken) {
		c.part, c.taken = part, taken
		for name, n := range part.dropped {
			c.dropped[name] += n
		}
	}
	return news
}

// last returns the last text, when Slurm was asked for it, and what became of the last collection.
func (c *collector) last() (part *text, taken time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.part, c.taken, c.err
}

// sorted returns the nodes of a snapshot, by name.
func sorted(s *slurmcache.Snapshot) []*rest.Node {
	return slices.SortedFunc(s.Nodes(), func(a, b *rest.Node) int { return cmp.Compare(a.Name, b.Name) })
}
