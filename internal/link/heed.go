// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// ErrHeld says that a node was left as it is, because somebody else has drained it or set it down.
var ErrHeld = errors.New("somebody else has drained the node or set it down")

// heed says which nodes somebody else has drained or set down since a change of their states was decided, so that they are left out
// of it: Slurm knows no write that depends on what is there, and would lose the reason. For that it asks Slurm once more: about each
// of a few nodes, and for the list of all when they are many, if there is room for that question and the answer is short. Otherwise
// the last answer is as old as questions are apart. A drain leaves without an answer, too, which keeps jobs away; what lets jobs onto
// a node does not.
func (l *Link) heed(ctx context.Context, nodes []string, c change) Failures {
	failures := Failures{}
	if c.delete || c.update.State == "" {
		return failures
	}
	answers, err := map[string]*rest.Node{}, error(nil)
	switch {
	case len(nodes) <= few:
		answers, err = l.askAbout(ctx, nodes)
	case l.asksShortly():
		err = l.ask(ctx, false)
	}
	if err != nil && c.update.State != drain {
		return all(nodes, fmt.Errorf("asking once more who has a say in the node: %w", err))
	}
	snapshot := l.Snapshot()
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
		l.poke() // so that everybody sees what somebody else has said
	}
	return failures
}

// few is how many nodes are asked about one by one: a call of a few kilobytes for each, which needs no room.
const few = 2

// askAbout asks about each of a few nodes, and returns what was answered up to the first failure.
func (l *Link) askAbout(ctx context.Context, names []string) (map[string]*rest.Node, error) {
	limited, cancel := context.WithTimeout(ctx, pollTimeout(0, 0))
	defer cancel()
	answers := make(map[string]*rest.Node, len(names))
	for _, name := range names {
		answer, err := l.Client().Node(limited, name)
		if err != nil {
			return answers, err
		}
		answers[name] = answer
	}
	return answers, nil
}

const (
	// shortList is how long a list may take that a drain waits for.
	shortList = 100 * time.Millisecond
	// aftermath is how long a write of ours lets the next answer be a list.
	aftermath = 2 * time.Second
)

// asksShortly says that there is room for a question about the nodes, and that the answer keeps nobody waiting: lists are short, or
// we have changed nothing since the last one, so that there is a list only if somebody else has.
func (l *Link) asksShortly() bool {
	written := l.Written()
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.options.Clock.Now()
	return l.room(now, aboutNodes, true) == 0 && (l.lists.median() < shortList || now.Sub(written) > aftermath)
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
