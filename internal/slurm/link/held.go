// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"fmt"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

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
