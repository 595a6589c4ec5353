// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

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

// unsent returns why a write did not leave: the link has ended, or its time was over.
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
