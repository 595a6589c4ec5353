// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// ErrClosed says that a link ended before it made a write.
var ErrClosed = errors.New("the link to Slurm is closed")

// Failures says, by node, why it was not changed. Nodes that were are not in it; nil is success.
//
// An error that is rest.Absent is about exactly this node. After rest.Unavailable nobody knows whether it was changed.
type Failures map[string]error

// Err is nil without failures; otherwise it says how many there were, and the first three by name.
func (f Failures) Err() error {
	if len(f) == 0 {
		return nil
	}
	var errs []error
	for _, name := range slices.SortedFunc(maps.Keys(f), hostlist.Compare) {
		if len(errs) == 3 {
			errs = append(errs, fmt.Errorf("and %d more", len(f)-3))
			break
		}
		errs = append(errs, fmt.Errorf("%s: %w", name, f[name]))
	}
	return errors.Join(errs...)
}

// Drain drains nodes with a reason, without which nobody could tell later whose drain it is. It overwrites the reason of
// nodes that are drained already: whether that may be is the caller's business.
func (l *Link) Drain(ctx context.Context, nodes []string, reason string) Failures {
	if strings.TrimSpace(reason) == "" {
		return all(nodes, errors.New("draining without a reason"))
	}
	return l.submit(ctx, nodes, update{state: "DRAIN", reason: reason})
}

// Undrain ends the drain of nodes, and with it Slurm forgets the reason. A node that is not drained stays as it is.
func (l *Link) Undrain(ctx context.Context, nodes []string) Failures {
	return l.submit(ctx, nodes, update{state: "UNDRAIN"})
}

// SetComment replaces the comment of nodes; an empty one is none.
func (l *Link) SetComment(ctx context.Context, nodes []string, comment string) Failures {
	return l.submit(ctx, nodes, update{comment: comment, hasComment: true})
}

// An update is what a write says, in a form that can be compared.
type update struct {
	state      string
	reason     string
	comment    string
	hasComment bool
}

func (u update) toSlurm() rest.NodeUpdate {
	out := rest.NodeUpdate{State: u.state, Reason: u.reason}
	if u.hasComment {
		out.Comment = &u.comment
	}
	return out
}

// A request is one caller's share of a batch.
type request struct {
	update update
	nodes  []string
	reply  chan Failures // with room for the reply, so that nobody waits for a caller who left
}

// submit hands a write to the batcher and waits for what becomes of it. A caller whose context ends does not learn
// whether the write was made.
func (l *Link) submit(ctx context.Context, nodes []string, u update) Failures {
	failures := Failures{}
	good := make([]string, 0, len(nodes))
	for _, name := range nodes {
		// A name like ALL or a[1-9] would be more than one node.
		if err := hostlist.CheckName(name); err != nil {
			failures[name] = err
		} else {
			good = append(good, name)
		}
	}
	if len(good) > 0 {
		r := &request{update: u, nodes: good, reply: make(chan Failures, 1)}
		select {
		case l.batcher.requests <- r:
			select {
			case answer := <-r.reply:
				maps.Copy(failures, answer)
			case <-ctx.Done():
				maps.Copy(failures, all(good, ctx.Err()))
			}
		case <-ctx.Done():
			maps.Copy(failures, all(good, ctx.Err()))
		case <-l.done:
			maps.Copy(failures, all(good, ErrClosed))
		}
	}
	if len(failures) == 0 {
		return nil
	}
	return failures
}

// all is the same failure for all nodes.
func all(nodes []string, err error) Failures {
	failures := make(Failures, len(nodes))
	for _, name := range nodes {
		failures[name] = err
	}
	return failures
}

// A batcher joins requests that say the same.
type batcher struct {
	clock    clock.Clock
	window   time.Duration
	requests chan *request
	write    func(ctx context.Context, nodes []string, u update) Failures
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
			g.answer(b.write(ctx, slices.Collect(maps.Keys(g.nodes)), g.update))
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
	update   update
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
	by     map[update]*group
	of     map[string]update
}

func newBatch(first *request) *batch {
	b := &batch{by: map[update]*group{}, of: map[string]update{}}
	b.add(first)
	return b
}

// add takes a request up, or refuses it because it says something else about a node than the batch does.
func (b *batch) add(r *request) bool {
	for _, name := range r.nodes {
		if other, known := b.of[name]; known && other != r.update {
			return false
		}
	}
	g := b.by[r.update]
	if g == nil {
		g = &group{update: r.update, nodes: map[string]struct{}{}}
		b.by[r.update] = g
		b.groups = append(b.groups, g)
	}
	for _, name := range r.nodes {
		b.of[name] = r.update
		g.nodes[name] = struct{}{}
	}
	g.requests = append(g.requests, r)
	return true
}

// write makes one call for all nodes. Slurm stops at the first name that it does not know, without saying which; then the
// nodes are listed anew, and those that are there are written again.
func (l *Link) write(ctx context.Context, nodes []string, u update) Failures {
	if ctx.Err() != nil {
		return all(nodes, ErrClosed)
	}
	defer l.poke()
	client := l.Client()
	err := client.UpdateNodes(ctx, hostlist.Compress(slices.Clone(nodes)), u.toSlurm())
	if err == nil {
		return nil
	}
	if !errors.Is(err, rest.Absent) || len(nodes) == 1 {
		return all(nodes, err)
	}
	absent := err
	if err := l.poll(ctx); err != nil {
		return all(nodes, fmt.Errorf("finding out which of %d nodes Slurm does not know: %w", len(nodes), err))
	}
	snapshot := l.Snapshot()
	failures := Failures{}
	var known []string
	for _, name := range nodes {
		switch _, exists := snapshot.Node(name); exists {
		case node.Yes:
			known = append(known, name)
		case node.No:
			failures[name] = absent
		case node.Unknown:
			failures[name] = &rest.Error{Kind: rest.Unavailable, Message: "whether Slurm knows the node cannot be told: " + snapshot.Why}
		}
	}
	if len(known) == 0 {
		return failures
	}
	if err := client.UpdateNodes(ctx, hostlist.Compress(slices.Clone(known)), u.toSlurm()); err != nil {
		if errors.Is(err, rest.Absent) && len(known) > 1 {
			// One more vanished between the two calls; which one is not known.
			err = &rest.Error{Kind: rest.Unavailable, Message: "nodes vanish while they are updated"}
		}
		maps.Copy(failures, all(known, err))
	}
	return failures
}
