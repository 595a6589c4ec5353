// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// A nodeLister is what a writer needs of the node poller.
type nodeLister interface {
	// ask asks for the nodes; with list, the answer has to be a list.
	ask(ctx context.Context, list bool) error
	// answersSoon reports whether asking keeps nobody waiting, when the last write about states ended at that time.
	answersSoon(written time.Time) bool
	// expectWithout lets the next lists be without nodes that are about to be deleted on purpose.
	expectWithout(ctx context.Context, names []string)
	// poke asks for a poll soon.
	poke()
}

// A writer changes nodes. Equal changes of several nodes within a window leave as one call.
type writer struct {
	connection *connection
	view       *view
	nodes      nodeLister
	load       *loadLimit
	done       <-chan struct{} // closed when the cache has ended
	publish    func(nodes ...string)
	// requested counts a write that a caller asked for, and batched the nodes of one call.
	requested func()
	batched   func(nodes int)
	// Writes about states and those about everything else go their own ways: a drain does not wait for comments.
	states, attributes *batcher
}

func newWriter(options Options, connection *connection, view *view, nodes nodeLister, load *loadLimit, done <-chan struct{}) *writer {
	w := &writer{connection: connection, view: view, nodes: nodes, load: load, done: done}
	batcher := func() *batcher {
		return &batcher{clock: options.Clock, window: options.Window, more: make(chan struct{}, 1), write: w.write, held: w.held, wrote: w.wrote}
	}
	w.states, w.attributes = batcher(), batcher()
	return w
}

// runBatchers writes until the context ends.
func (w *writer) runBatchers(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { w.states.run(ctx) })
	running.Go(func() { w.attributes.run(ctx) })
	running.Wait()
}

// wrote asks for the nodes that a write has changed, and for what follows from it.
func (w *writer) wrote() {
	w.load.boost(w.view.now(), aboutNodes)
	w.nodes.poke()
}

// ErrClosed is for a cache that ended before it made a write, or before it was known what became of it.
var ErrClosed = errors.New("the Slurm cache is closed")

// ErrLate is for a write that was not made because its time was over before it could leave.
var ErrLate = errors.New("the write could not leave in time")

// Failures are, by node, why it was not changed. Changed nodes are not in it; nil is success.
//
// An error that is rest.Absent is about exactly this node. After rest.Unavailable it is not known whether it was changed.
type Failures map[string]error

// Err is nil without failures; otherwise it has their number, and the first three by name.
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

// Slurm's words for states to write.
const (
	drain  = "DRAIN"
	resume = "RESUME"
)

// Drain drains nodes with a reason, which later shows whose drain it is. It overwrites the reason of nodes that are drained already:
// whether it may is the caller's business.
func (w *writer) Drain(ctx context.Context, nodes []string, reason string) Failures {
	if strings.TrimSpace(reason) == "" {
		return all(nodes, errors.New("draining without a reason"))
	}
	return w.submit(ctx, w.states, nodes, updating(rest.NodeUpdate{State: drain, Reason: reason}))
}

// Resume lets nodes be used again that are drained or DOWN. Slurm forgets the reasons. What somebody else has drained or set down
// stays as it is, with ErrHeld.
func (w *writer) Resume(ctx context.Context, nodes []string) Failures {
	return w.submit(ctx, w.states, nodes, updating(rest.NodeUpdate{State: resume}))
}

// Draining reports whether drains are waiting to leave: less urgent calls may wait until they have.
func (w *writer) Draining() bool {
	return w.states.waiting(func(c change) bool { return c.update.State == drain })
}

// Written is when the last write about states ended, by the cache's clock. A list that was asked for later shows it.
func (w *writer) Written() time.Time {
	w.states.mu.Lock()
	defer w.states.mu.Unlock()
	return w.states.ended
}

// An Update is what to change of nodes besides their state. What is nil stays as it is; a pointer to "" and a list without entries
// remove what is there.
type Update struct {
	// Comment survives a restart of slurmd, Extra is overwritten by it.
	Comment *string
	Extra   *string
	// Features are the available features, FeaturesActive those that are active.
	Features       []string
	FeaturesActive []string
	// Topology is the place of the node, "default:leaf1"; Slurm before 25.05 refuses it.
	Topology *string
}

// DrainLater is Drain of one node for a caller that does not wait, see UpdateLater.
func (w *writer) DrainLater(ctx context.Context, name, reason string, done func(error)) {
	if strings.TrimSpace(reason) == "" {
		done(errors.New("draining without a reason"))
		return
	}
	w.later(ctx, w.states, name, updating(rest.NodeUpdate{State: drain, Reason: reason}), done)
}

// UndrainLater ends the drain of a node, and with it Slurm forgets the reason. A node that is not drained stays as it is. What has
// not left by the deadline is dropped, with ErrLate.
func (w *writer) UndrainLater(ctx context.Context, name string, deadline time.Time, done func(error)) {
	w.laterBy(ctx, deadline, w.states, name, updating(rest.NodeUpdate{State: "UNDRAIN"}), done)
}

// UndrainNotedLater is UndrainLater for a drain of somebody else that the comment of the node notes. Any other drain of somebody else stays.
func (w *writer) UndrainNotedLater(ctx context.Context, name string, deadline time.Time, done func(error)) {
	c := updating(rest.NodeUpdate{State: "UNDRAIN"})
	c.noted, c.key = true, "noted "+c.key
	w.laterBy(ctx, deadline, w.states, name, c, done)
}

// ReviveLater lets a node that is DOWN be used again; its drain stays. Slurm forgets the reason of a node without a drain. What has
// not left by the deadline is dropped, with ErrLate.
func (w *writer) ReviveLater(ctx context.Context, name string, deadline time.Time, done func(error)) {
	w.laterBy(ctx, deadline, w.states, name, updating(rest.NodeUpdate{State: "IDLE"}), done)
}

// UpdateLater updates one node for a caller that does not wait, and whose context only gives the caller's span: done is called, from a
// goroutine of the cache, when it is known what became of the update, and then subscribers get the node. done must not block. Equal
// updates within the window leave as one call.
func (w *writer) UpdateLater(ctx context.Context, name string, u Update, done func(error)) {
	w.later(ctx, w.attributes, name, updating(u.forSlurm()), done)
}

// later hands a write of one node to a batcher, and reports what became of it.
func (w *writer) later(ctx context.Context, to *batcher, name string, c change, done func(error)) {
	w.laterBy(ctx, time.Time{}, to, name, c, done)
}

// laterBy is later for a write that is dropped when it has not left by the deadline.
func (w *writer) laterBy(ctx context.Context, deadline time.Time, to *batcher, name string, c change, done func(error)) {
	valid, failures := validNames([]string{name})
	if len(valid) == 0 {
		done(failures[name])
		return
	}
	w.enqueue(ctx, to, valid, deadline, c, func(f Failures) {
		done(f[name])
		w.publish(name)
	})
}

// forSlurm is the update in the words of the client.
func (u Update) forSlurm() rest.NodeUpdate {
	return rest.NodeUpdate{
		Comment: u.Comment, Extra: u.Extra, Features: u.Features, FeaturesActive: u.FeaturesActive, Topology: u.Topology,
	}
}

// Forget deletes the records of nodes. A node that Slurm does not have is a success; Slurm refuses those that run jobs, and
// the cache those on which jobs are suspended. A slurmd that still runs there does not register again until it is restarted.
func (w *writer) Forget(ctx context.Context, nodes []string) Failures {
	return w.submit(ctx, w.states, nodes, change{delete: true, key: "delete"})
}

// submit hands a write to the batcher and waits for its result. A caller whose context ends does not learn whether the write was made.
func (w *writer) submit(ctx context.Context, to *batcher, nodes []string, c change) Failures {
	valid, failures := validNames(nodes)
	if len(valid) > 0 {
		reply := make(chan Failures, 1) // with room, so that nobody waits for a caller who left
		r := w.enqueue(ctx, to, valid, time.Time{}, c, func(f Failures) { reply <- f })
		select {
		case answer := <-reply:
			maps.Copy(failures, answer)
		case <-ctx.Done():
			r.abandoned.Store(true)
			maps.Copy(failures, all(valid, ctx.Err()))
		case <-w.done:
			maps.Copy(failures, all(valid, ErrClosed))
		}
	}
	if len(failures) == 0 {
		return nil
	}
	return failures
}

// enqueue hands a write to a batcher, which drops it when it has not left by the deadline; zero for none.
func (w *writer) enqueue(ctx context.Context, to *batcher, nodes []string, deadline time.Time, c change, reply func(Failures)) *request {
	r := &request{change: c, nodes: nodes, deadline: deadline, reply: reply}
	if to.traced != nil {
		r.caller = trace.SpanContextFromContext(ctx)
	}
	if !to.enqueue(r) {
		reply(all(nodes, ErrClosed))
		return r
	}
	w.requested()
	return r
}

// validNames separates names of nodes from others: one like ALL or a[1-9] would be more than one node.
func validNames(nodes []string) (valid []string, failures Failures) {
	failures = Failures{}
	for _, name := range nodes {
		if err := hostlist.CheckName(name); err != nil {
			failures[name] = err
		} else {
			valid = append(valid, name)
		}
	}
	return valid, failures
}

// all is the same failure for all nodes.
func all(nodes []string, err error) Failures {
	failures := make(Failures, len(nodes))
	for _, name := range nodes {
		failures[name] = err
	}
	return failures
}
