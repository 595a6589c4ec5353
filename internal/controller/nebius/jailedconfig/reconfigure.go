// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package jailedconfig

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// round is one rereading of the configuration, from the call until all slurmds have it. It is lost with the process; the next process
// begins another, which does no harm.
type round struct {
	// before is when each slurmd had started.
	before map[string]time.Time
	began  time.Time
	pause  time.Duration
}

// roundInterval is the time between the beginnings of two rounds. Slurm reports in whole seconds when a slurmd has started: if one rereads
// twice within a second, the second time cannot be seen.
const roundInterval = 2 * time.Second

// retryInterval is how long after the beginning of a round that hides a restart the next one begins: a second reconfiguration within less
// could end a slurmd.
const retryInterval = 3 * time.Second

// waiting are the rounds under way, by group.
type waiting struct {
	mu     sync.Mutex
	rounds map[string]*round
	// latest is when a round of any group began.
	latest time.Time
	// silent is how many lists of nodes in a row had no answer.
	silent int
}

// pause returns how long to wait before a round may begin.
func (w *waiting) pause(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.latest.Add(roundInterval).Sub(now)
}

func (w *waiting) of(key string) *round {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rounds[key]
}

func (w *waiting) begin(key string, r *round, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rounds[key], w.latest = r, now
}

func (w *waiting) end(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.rounds, key)
}

// longestList bounds the waiting for a list; 10,000 nodes took 2.2 s.
const longestList = time.Minute

// listTimeout returns how long to wait for a list of nodes.
func (w *waiting) listTimeout() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return rest.ListTimeout(0, w.silent, longestList)
}

// answered notes whether Slurm answered.
func (w *waiting) answered(yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent++
	if yes {
		w.silent = 0
	}
}

// reconfigure has Slurm reread its configuration, or checks whether all slurmds have. A slurmd that rereads starts anew. waits is what is
// waited for; empty when all is done.
func (r *reconciler) reconfigure(ctx context.Context, key string) (again time.Duration, waits string, err error) {
	w := r.waiting.of(key)
	if pause := r.waiting.pause(r.Clock.Now()); w == nil && pause > 0 {
		return pause, "slurmds have been told to reread their configuration a moment ago", nil
	}
	slurm, err := r.Slurm(ctx)
	if err != nil {
		return 0, "", err
	}
	defer slurm.Close()
	list, err := r.nodes(ctx, slurm)
	if err != nil {
		return 0, "", err
	}
	if w == nil {
		named, err := endangered(ctx, slurm, list)
		if err != nil {
			return 0, "", err
		}
		if len(named) > 0 {
			return min(endangeredInterval, r.Poll), fmt.Sprintf("slurmctld has no record of %s, and would end pending jobs that name it; it reconfigures when the node has registered or the jobs are gone",
				hostlist.Compress(named)), nil
		}
		w = &round{before: map[string]time.Time{}, began: r.Clock.Now(), pause: min(time.Second, r.Poll)}
		for _, n := range list.Nodes {
			if counts(n) {
				w.before[n.Name] = n.SlurmdTime
			}
		}
		if err := slurm.Reconfigure(ctx); err != nil {
			return 0, "", err
		}
		ctrl.LoggerFrom(ctx).Info("Had Slurm reread its configuration", "nodes", len(w.before))
		r.waiting.begin(key, w, r.Clock.Now())
		return w.pause, "slurmds reread their configuration", nil
	}
	pending := w.notRestarted(list.Nodes)
	switch {
	case len(pending) == 0:
		r.waiting.end(key)
		return 0, "", nil
	case w.hidesRestart(list.Nodes) && !r.Clock.Now().Before(w.began.Add(retryInterval)):
		r.waiting.end(key)
		return w.pause, "slurmds are asked to reread their configuration once more", nil
	case r.Clock.Now().Before(w.began.Add(r.Wait)):
		w.pause = min(2*w.pause, r.Poll)
		return w.pause, "slurmds reread their configuration", nil
	}
	r.waiting.end(key)
	return 0, "", fmt.Errorf("%d of %d slurmds have not reread their configuration within %s, and are asked again: %s",
		len(pending), len(w.before), r.Wait, few(pending))
}

// nodes lists the nodes of Slurm, and waits longer for the answer the more often none came.
func (r *reconciler) nodes(ctx context.Context, slurm Slurm) (rest.NodeList, error) {
	ctx, cancel := context.WithTimeout(ctx, r.waiting.listTimeout())
	defer cancel()
	list, err := slurm.Nodes(ctx, time.Time{})
	r.waiting.answered(err == nil)
	return list, err
}

// notRestarted returns the nodes whose slurmds have not started anew, of those that were there and still count.
func (w *round) notRestarted(nodes []*rest.Node) []string {
	var names []string
	for _, n := range nodes {
		if before, was := w.before[n.Name]; was && counts(n) && !n.SlurmdTime.After(before) {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names
}

// hidesRestart reports whether the restart of a slurmd cannot be seen: it had started within a roundInterval of the round's
// beginning, because somebody else had Slurm reread its configuration. Slurm shows the same time when it has started once more.
func (w *round) hidesRestart(nodes []*rest.Node) bool {
	return slices.ContainsFunc(nodes, func(n *rest.Node) bool {
		before, was := w.before[n.Name]
		return was && counts(n) && n.SlurmdTime.Equal(before) && before.Sub(w.began).Abs() <= roundInterval
	})
}

// counts reports whether a slurmd of this node can be expected to reread anything. A state that is not understood counts.
func counts(n *rest.Node) bool {
	s := node.Parse(n.State)
	return !n.SlurmdTime.IsZero() && s.Down() != node.Yes && s.NotResponding() != node.Yes &&
		!s.Has(node.PoweredDown) && !s.Has(node.PoweringDown) && !s.Has(node.PoweringUp)
}

// few names the first ones of many.
func few(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
