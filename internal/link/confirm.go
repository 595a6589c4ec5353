// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"fmt"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
)

// Confirm asks Slurm now and returns the Snapshot that the answer made: the last look before something is destroyed that
// the named nodes stand for. It is an error when Slurm did not answer, or when the snapshot is not Fresh.
//
// Any number of callers share one question, as long as it is asked after each of them called. While questions have taken
// more of slurmrestd's time than they may, Confirm waits; the context bounds that.
func (l *Link) Confirm(ctx context.Context, nodes ...string) (*Snapshot, error) {
	fail := func(err error) (*Snapshot, error) {
		return nil, fmt.Errorf("asking Slurm cluster %s about %s once more: %w", l.key, hostlist.Compress(nodes), err)
	}
	if err := l.ask(ctx); err != nil {
		return fail(err)
	}
	snapshot := l.Snapshot()
	if snapshot.Trust != Fresh {
		return fail(fmt.Errorf("the answer is not to be trusted: %s", snapshot.Why))
	}
	return snapshot, nil
}

// ask polls, or waits for a poll of somebody else that begins after the call.
func (l *Link) ask(ctx context.Context) error {
	select {
	case <-l.done:
		return ErrClosed
	default:
	}
	l.mu.Lock()
	before := l.polls
	l.mu.Unlock()
	release, err := l.turn(ctx)
	if err != nil {
		return err
	}
	defer release()
	l.mu.Lock()
	asked, failed := l.polls > before, l.failed
	l.mu.Unlock()
	if asked {
		return failed
	}
	if err := l.afford(ctx, &l.nodeTime); err != nil {
		return err
	}
	return l.poll(ctx)
}
