// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"fmt"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// ErrHeld says that a node was left as it is, because somebody else has drained it or set it down.
var ErrHeld = errors.New("somebody else has drained the node or set it down")

// heed leaves the nodes out of a change of states that somebody else has drained or set down since it was decided: Slurm knows no
// write that depends on what is there, and would lose the reason. For that it asks Slurm once more, if there is room for a question;
// otherwise the last answer is as old as questions are apart. A drain leaves without an answer, too, which keeps jobs away; what
// lets jobs onto a node does not.
func (l *Link) heed(ctx context.Context, nodes []string, c change) Failures {
	failures := Failures{}
	if c.delete || c.update.State == "" {
		return failures
	}
	l.mu.Lock()
	wait := l.room(l.options.Clock.Now(), aboutNodes, true)
	l.mu.Unlock()
	if wait == 0 {
		if err := l.ask(ctx, false); err != nil && c.update.State != drain {
			return all(nodes, fmt.Errorf("asking once more who has a say in the node: %w", err))
		}
	}
	snapshot := l.Snapshot()
	for _, name := range nodes {
		if c.held(snapshot, name) {
			failures[name] = ErrHeld
		}
	}
	return failures
}

// held says whether somebody else has a say in what the change is about. A drain joins the reason of a node that is DOWN.
func (c change) held(s *Snapshot, name string) bool {
	found, _ := s.Node(name)
	if found == nil || (node.Reason{Text: found.Reason}).Ours() {
		return false
	}
	drained := s.State(name).Drain() == node.Yes
	if c.update.State == drain {
		return drained
	}
	return drained || found.Reason != ""
}
