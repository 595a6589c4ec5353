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

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// ErrClosed says that a link ended before it made a write, or before it was known what became of it.
var ErrClosed = errors.New("the link to Slurm is closed")

// ErrLate says that a write was not made because its time was over before it could leave.
var ErrLate = errors.New("the write could not leave in time")

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

// drain is the state that drains a node, in Slurm's words.
const drain = "DRAIN"

// Drain drains nodes with a reason, without which nobody could tell later whose drain it is. It overwrites the reason of
// nodes that are drained already: whether that may be is the caller's business.
func (l *Link) Drain(ctx context.Context, nodes []string, reason string) Failures {
	if strings.TrimSpace(reason) == "" {
		return all(nodes, errors.New("draining without a reason"))
	}
	return l.submit(ctx, l.states, nodes, updating(rest.NodeUpdate{State: drain, Reason: reason}))
}

// Draining says that drains are waiting to leave: whatever is less urgent may wait until they have.
func (l *Link) Draining() bool {
	return l.states.waiting(func(c change) bool { return c.update.State == drain })
}

// Written is when the last write about states ended, by the link's clock. A list that was asked for later shows it.
func (l *Link) Written() time.Time {
	l.states.mu.Lock()
	defer l.states.mu.Unlock()
	return l.states.ended
}

// An Update says what to change of nodes besides their state. What is nil stays as it is; a pointer to "" and a list
// without entries remove what is there.
type Update struct {
	// Comment survives a restart of slurmd, Extra is overwritten by it.
	Comment *string
	Extra   *string
	// Features are the available features, FeaturesActive those that are active.
	Features       []string
	FeaturesActive []string
	// Topology says where the node is, "default:leaf1"; Slurm before 25.05 refuses it.
	Topology *string
	// Reason replaces the reason of nodes that are drained or down. Slurm does not let it be removed.
	Reason *string
}

// DrainLater is Drain of one node for somebody who does not wait, as UpdateLater is Update.
func (l *Link) DrainLater(name, reason string, told func(error)) {
	if strings.TrimSpace(reason) == "" {
		told(errors.New("draining without a reason"))
		return
	}
	l.later(l.states, name, updating(rest.NodeUpdate{State: drain, Reason: reason}), told)
}

// UndrainLater ends the drain of a node, and with it Slurm forgets the reason. A node that is not drained stays as it is. What has
// not left by then is dropped, with ErrLate.
func (l *Link) UndrainLater(name string, by time.Time, told func(error)) {
	l.laterBy(by, l.states, name, updating(rest.NodeUpdate{State: "UNDRAIN"}), told)
}

// ReviveLater lets a node that is DOWN be used again; a drain of it stays. Slurm forgets the reason of one without a drain. What has
// not left by then is dropped, with ErrLate.
func (l *Link) ReviveLater(name string, by time.Time, told func(error)) {
	l.laterBy(by, l.states, name, updating(rest.NodeUpdate{State: "IDLE"}), told)
}

// Update says the same about many nodes. Equal updates within the window leave as one call.
func (l *Link) Update(ctx context.Context, nodes []string, u Update) Failures {
	if u.Reason != nil && strings.TrimSpace(*u.Reason) == "" {
		return all(nodes, errors.New("removing a reason, which Slurm does not do"))
	}
	if u.empty() {
		return nil
	}
	out := u.asked()
	if u.Reason != nil {
		out.Reason = *u.Reason
		return l.submit(ctx, l.states, nodes, updating(out)) // in order with drains, which set reasons too
	}
	return l.submit(ctx, l.attributes, nodes, updating(out))
}

// UpdateLater is Update of one node for somebody who does not wait: told is called, from a goroutine of the link, when it
// is known what became of it, and then subscribers are told the node. It must not block. Reasons are not for it.
func (l *Link) UpdateLater(name string, u Update, told func(error)) {
	l.later(l.attributes, name, updating(u.asked()), told)
}

// later hands a write of one node to a batcher, and tells what became of it.
func (l *Link) later(to *batcher, name string, c change, told func(error)) {
	l.laterBy(time.Time{}, to, name, c, told)
}

// laterBy is later for a write that is dropped when it has not left by then.
func (l *Link) laterBy(by time.Time, to *batcher, name string, c change, told func(error)) {
	good, failures := named([]string{name})
	if len(good) == 0 {
		told(failures[name])
		return
	}
	l.hand(to, good, by, c, func(f Failures) {
		told(f[name])
		l.hub.publish(l.key, name)
	})
}

func (u Update) empty() bool {
	return u.Comment == nil && u.Extra == nil && u.Features == nil && u.FeaturesActive == nil && u.Topology == nil && u.Reason == nil
}

// asked is the update in the words of the client, but for the reason.
func (u Update) asked() rest.NodeUpdate {
	return rest.NodeUpdate{
		Comment: u.Comment, Extra: u.Extra, Features: u.Features, FeaturesActive: u.FeaturesActive, Topology: u.Topology,
	}
}

// Forget deletes the records of nodes. A node that Slurm does not have is a success; Slurm refuses those that run jobs, and
// the link those on which jobs are suspended. A slurmd that still runs there does not register again until it is restarted.
func (l *Link) Forget(ctx context.Context, nodes []string) Failures {
	return l.submit(ctx, l.states, nodes, change{delete: true, key: "delete"})
}

// submit hands a write to the batcher and waits for what becomes of it. A caller whose context ends does not learn
// whether the write was made.
func (l *Link) submit(ctx context.Context, to *batcher, nodes []string, c change) Failures {
	good, failures := named(nodes)
	if len(good) > 0 {
		reply := make(chan Failures, 1) // with room, so that nobody waits for a caller who left
		r := l.hand(to, good, time.Time{}, c, func(f Failures) { reply <- f })
		select {
		case answer := <-reply:
			maps.Copy(failures, answer)
		case <-ctx.Done():
			r.left.Store(true)
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

// hand hands a write to the batcher, which drops it when it has not left by then; zero for never.
func (l *Link) hand(to *batcher, nodes []string, by time.Time, c change, reply func(Failures)) *request {
	r := &request{change: c, nodes: nodes, by: by, reply: reply}
	if !to.hand(r) {
		reply(all(nodes, ErrClosed))
		return r
	}
	l.metrics.requests.WithLabelValues(l.key.Namespace, l.key.Name).Inc()
	return r
}

// named tells names of nodes from others: one like ALL or a[1-9] would be more than one node.
func named(nodes []string) (good []string, failures Failures) {
	failures = Failures{}
	for _, name := range nodes {
		if err := hostlist.CheckName(name); err != nil {
			failures[name] = err
		} else {
			good = append(good, name)
		}
	}
	return good, failures
}

// all is the same failure for all nodes.
func all(nodes []string, err error) Failures {
	failures := make(Failures, len(nodes))
	for _, name := range nodes {
		failures[name] = err
	}
	return failures
}
