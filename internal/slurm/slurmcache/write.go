// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// A change is what a write does to nodes: it updates them, or deletes their records.
type change struct {
	update rest.NodeUpdate
	delete bool
	// noted is true if the change ends a drain of somebody else that the comment of the node notes.
	noted bool
	// key is the same for changes that are the same.
	key string
}

func updating(u rest.NodeUpdate) change {
	key, err := json.Marshal(u)
	if err != nil {
		panic(err) // strings and lists of them can always be written
	}
	return change{update: u, key: string(key)}
}

// call makes one call for nodes.
func (w *writer) call(ctx context.Context, client *rest.Client, nodes []string, c change) error {
	w.batched(len(nodes))
	expression := hostlist.Compress(slices.Clone(nodes))
	if c.delete {
		return client.DeleteNodes(ctx, expression)
	}
	return client.UpdateNodes(ctx, expression, c.update)
}

// maxNodesPerCall is how many nodes one call may name. Slurm holds all its locks while it goes through them, and a name without
// company takes up to 64 bytes of an expression.
const maxNodesPerCall = 1000

// write makes as few calls as there can be for the nodes.
func (w *writer) write(ctx context.Context, nodes []string, c change) Failures {
	failures := Failures{}
	slices.SortFunc(nodes, hostlist.Compare)
	for some := range slices.Chunk(nodes, maxNodesPerCall) {
		if err := ctx.Err(); err != nil {
			maps.Copy(failures, all(some, unsent(err)))
			continue
		}
		if c.delete {
			var refused Failures
			some, refused = w.deletable(ctx, some)
			maps.Copy(failures, refused)
			w.nodes.expectWithout(ctx, some)
		}
		if len(some) == 0 {
			continue
		}
		maps.Copy(failures, w.writeChunk(ctx, some, c))
	}
	if errors.Is(ctx.Err(), context.Canceled) { // which is what became of the call that was cut short
		for name := range failures {
			failures[name] = ErrClosed
		}
	}
	return failures
}

// unsent returns why a write did not leave: the cache has ended, or its time was over.
func unsent(ended error) error {
	if errors.Is(ended, context.DeadlineExceeded) {
		return ErrLate
	}
	return ErrClosed
}

// writeChunk makes one call for all nodes. Slurm refuses it for an unknown node, or a busy one that is to be deleted, without naming
// it. Then the nodes are listed anew, and those that can be changed are written again.
func (w *writer) writeChunk(ctx context.Context, nodes []string, c change) Failures {
	client := w.connection.get()
	err := w.call(ctx, client, nodes, c)
	switch {
	case err == nil, c.delete && len(nodes) == 1 && errors.Is(err, rest.Absent):
		return nil
	case len(nodes) == 1, !errors.Is(err, rest.Absent) && !rest.NodesBusy(err):
		return all(nodes, err)
	}
	if err := w.nodes.ask(ctx, false); err != nil {
		return all(nodes, fmt.Errorf("finding out which of %d nodes Slurm refuses: %w", len(nodes), err))
	}
	possible, failures := c.retriable(w.view.snapshot(), nodes)
	if len(possible) == 0 {
		return failures
	}
	if err := w.call(ctx, client, possible, c); err != nil {
		if len(possible) > 1 && (errors.Is(err, rest.Absent) || rest.NodesBusy(err)) {
			// One more changed between the two calls; which one is not known.
			err = &rest.Error{Kind: rest.Unavailable, Message: "nodes change while they are written", Err: err}
		}
		maps.Copy(failures, all(possible, err))
	}
	return failures
}

// retriable separates, by a snapshot taken after a call for many nodes was refused, the nodes for which it may be made again from those
// that are to blame.
func (c change) retriable(s *Snapshot, nodes []string) (possible []string, failures Failures) {
	failures = Failures{}
	for _, name := range nodes {
		switch _, exists := s.Node(name); {
		case exists == node.Unknown:
			failures[name] = &rest.Error{Kind: rest.Unavailable, Message: "it is not known whether Slurm has the node: " + s.Why}
		case exists == node.No && c.delete:
			// The node is deleted, as wanted.
		case exists == node.No:
			failures[name] = &rest.Error{Kind: rest.Absent, Code: rest.CodeInvalidNodeName, Message: "Slurm does not have the node"}
		case c.delete && s.State(name).Busy() != node.No:
			failures[name] = &rest.Error{Kind: rest.Refused, Code: rest.CodeNodesBusy, Message: "the node runs jobs"}
		case c.delete && (s.State(name).Has(node.Reserved) || s.State(name).Has(node.Maintenance)):
			failures[name] = &rest.Error{Kind: rest.Refused, Code: rest.CodeNodesBusy, Message: "a reservation of the node is active"}
		default:
			possible = append(possible, name)
		}
	}
	return possible, failures
}

// ErrHeld is for a node that was left as it is, because somebody else has drained it or set it down.
var ErrHeld = errors.New("somebody else has drained the node or set it down")

// held returns the nodes that somebody else has drained or set down since a change of their states was decided. They are left out of
// the change: Slurm has no conditional writes, and would lose the reason.
//
// So the writer asks Slurm once more. It asks about each of a few nodes, and for the list of all when they are many, if the limits
// allow a request and the answer is short. Otherwise it uses the last answer, which is as old as polls are apart. A drain is written
// without an answer, too, because it keeps jobs away. A change that lets jobs onto a node is not.
func (w *writer) held(ctx context.Context, nodes []string, c change) Failures {
	failures := Failures{}
	if c.delete || c.update.State == "" {
		return failures
	}
	answers, err := map[string]*rest.Node{}, error(nil)
	switch {
	case len(nodes) <= maxSingleQueries:
		answers, err = w.askAbout(ctx, nodes)
	case w.nodes.answersSoon(w.Written()):
		err = w.nodes.ask(ctx, false)
	}
	if err != nil && c.update.State != drain {
		return all(nodes, fmt.Errorf("asking once more who has a say in the node: %w", err))
	}
	snapshot := w.view.snapshot()
	for _, name := range nodes {
		said := answers[name]
		if said == nil {
			said, _ = snapshot.Node(name)
		}
		if said != nil && c.overrides(said) {
			failures[name] = ErrHeld
		}
	}
	if len(failures) > 0 {
		w.nodes.poke() // so that all see somebody else's reason
	}
	return failures
}

// maxSingleQueries is how many nodes are asked about one by one. Each call has a few kilobytes, and no limit counts it.
const maxSingleQueries = 2

// askAbout asks about each of a few nodes, and returns what was answered up to the first failure.
func (w *writer) askAbout(ctx context.Context, names []string) (map[string]*rest.Node, error) {
	limited, cancel := context.WithTimeout(ctx, rest.ListTimeout(0, 0, callTimeout))
	defer cancel()
	answers := make(map[string]*rest.Node, len(names))
	for _, name := range names {
		answer, err := w.connection.get().Node(limited, name)
		if err != nil {
			return answers, err
		}
		answers[name] = answer
	}
	return answers, nil
}

// overrides reports whether the change would override somebody else's state or reason. A drain joins the reason of a node that is DOWN.
// A drain for a reboot or a replacement takes the place of that for which the machine is rebooted or replaced. A drain that the comment
// notes may be ended by a change that relies on the note.
func (c change) overrides(n *rest.Node) bool {
	if (node.Reason{Text: n.Reason}).Ours() {
		return false
	}
	if comment, ok := node.ParseComment(n.Comment); ok && c.noted && comment.Notes(ReasonOf(n)) {
		return false
	}
	state := node.Parse(n.State)
	drained := state.Drain() == node.Yes
	if c.update.State == powerUp {
		return false // a drain stays
	}
	if c.update.State == resume || c.update.State == powerDown {
		return node.HeldBy(state, ReasonOf(n)) == node.SomebodyElse
	}
	if c.update.State == drain {
		return drained && !(node.Reason{Text: c.update.Reason}).TakesPlaceOf(node.Reason{Text: n.Reason})
	}
	return drained || n.Reason != ""
}
