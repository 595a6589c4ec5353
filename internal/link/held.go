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

// ErrHeld says that a node was left as it is, because somebody else has drained it or set it down.
var ErrHeld = errors.New("somebody else has drained the node or set it down")

// held says which nodes somebody else has drained or set down since a change of their states was decided, so that they are left out
// of it: Slurm knows no write that depends on what is there, and would lose the reason. For that it asks Slurm once more: about each
// of a few nodes, and for the list of all when they are many, if the limits allow that question and the answer is short. Otherwise
// the last answer is as old as questions are apart. A drain leaves without an answer, too, which keeps jobs away; what lets jobs onto
// a node does not.
func (w *writer) held(ctx context.Context, nodes []string, c change) Failures {
	failures := Failures{}
	if c.delete || c.update.State == "" {
		return failures
	}
	answers, err := map[string]*rest.Node{}, error(nil)
	switch {
	case len(nodes) <= maxSingleQuestions:
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
		if said != nil && c.held(said) {
			failures[name] = ErrHeld
		}
	}
	if len(failures) > 0 {
		w.nodes.poke() // so that everybody sees what somebody else has said
	}
	return failures
}

// maxSingleQuestions is how many nodes are asked about one by one: a call of a few kilobytes for each, which no limit counts.
const maxSingleQuestions = 2

// askAbout asks about each of a few nodes, and returns what was answered up to the first failure.
func (w *writer) askAbout(ctx context.Context, names []string) (map[string]*rest.Node, error) {
	limited, cancel := context.WithTimeout(ctx, pollTimeout(0, 0))
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

// held says whether somebody else has a say in what the change is about. A drain joins the reason of a node that is DOWN.
func (c change) held(n *rest.Node) bool {
	if (node.Reason{Text: n.Reason}).Ours() {
		return false
	}
	drained := node.Parse(n.State).Drain() == node.Yes
	if c.update.State == drain {
		return drained
	}
	return drained || n.Reason != ""
}
