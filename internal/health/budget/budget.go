// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package budget lets checks drain no more workers of a NodeSet at the same time than the operator may (--max-nodes-drained-by-checks).
// health.DrainBudget decides. This package keeps what a decision needs beside Slurm's answers: which drains were allowed a moment ago, to any
// check, so that Slurm does not show them yet. After a restart of the operator, Slurm's reasons alone show which nodes are out.
package budget

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// Budgets are the budgets of all NodeSets. They are for one process: only the leader drains.
type Budgets struct {
	limit health.DrainLimit
	clock clock.PassiveClock

	mu   sync.Mutex
	sets map[types.NamespacedName]*nodeSet
	// awaited are the checks that ask for every NodeSet. Which nodes wait is not known before they have.
	awaited map[string]struct{}
	// changed is called with the NodeSets of which others wait.
	changed func(types.NamespacedName)
}

// nodeSet is what checks have asked for one NodeSet.
type nodeSet struct {
	answers map[string]answer
	// unseen are the Slurm nodes that a check was allowed to drain and no longer asks for, and that Slurm has not shown drained
	// since, by when the check was allowed.
	unseen map[string]time.Time
	// workers is how many workers it had when it was asked for last, and out how many of them were out for checks then.
	workers, out int
}

// answer is what a check was answered.
type answer struct {
	health.DrainVerdict
	at time.Time
}

// grantTime is how long a drain counts that Slurm does not show, and that its check does not ask for any more: a person has undrained the
// node before others saw it drained.
const grantTime = 2 * time.Minute

// New makes the budgets, all with the same limit.
func New(limit health.DrainLimit, c clock.PassiveClock) *Budgets {
	return &Budgets{limit: limit, clock: c, sets: map[types.NamespacedName]*nodeSet{}, awaited: map[string]struct{}{}}
}

// Worker is the Slurm node of a worker, as Slurm shows it now.
type Worker struct {
	Node   string
	State  node.State
	Reason node.Reason
}

// Request is that one check wants workers of a NodeSet out of service.
type Request struct {
	NodeSet types.NamespacedName
	// By names the check. A request replaces what the same check asked before for the NodeSet.
	By string
	// Workers are all workers of the NodeSet, by a Fresh snapshot.
	Workers []Worker
	// Wanted are the Slurm nodes that the check wants out of service. A node has to be among them until Slurm shows its drain, or the check
	// does not want it any more.
	Wanted []string
}

// Ask returns which of the wanted nodes may be drained now, and notes them.
func (b *Budgets) Ask(r Request) health.DrainVerdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	set := b.sets[r.NodeSet]
	if set == nil {
		set = &nodeSet{answers: map[string]answer{}, unseen: map[string]time.Time{}}
		b.sets[r.NodeSet] = set
	}
	set.letGo(r.By, r.Wanted)
	set.see(r.Workers)
	before, known := set.waiting(), b.known(set)
	decision := health.DrainBudget{Limit: b.limit, Workers: len(r.Workers), Out: set.outFor(r, b.clock.Now()), Wanted: r.Wanted}.Decide()
	set.answers[r.By], set.workers, set.out = answer{decision, b.clock.Now()}, len(r.Workers), decision.Out
	b.tell(r.NodeSet, !slices.Equal(before, set.waiting()) || b.known(set) != known)
	return decision
}

// letGo records the drains that a check was allowed and no longer asks for. They may be carried out already, and Slurm may show that
// later: another run of the check has its own list.
func (s *nodeSet) letGo(by string, wanted []string) {
	for _, name := range s.answers[by].Go {
		if !slices.Contains(wanted, name) {
			s.unseen[name] = s.answers[by].at
		}
	}
}

// see drops the drains that Slurm shows now. From then on its word alone counts.
func (s *nodeSet) see(workers []Worker) {
	for _, w := range workers {
		if health.OutForCheck(w.State, w.Reason) {
			delete(s.unseen, w.Node)
		}
	}
}

// outFor returns the nodes that are out of service for checks: those that Slurm shows so, and those of this NodeSet that checks may drain
// and that Slurm does not show yet.
func (s *nodeSet) outFor(r Request, now time.Time) (out []string) {
	maps.DeleteFunc(s.unseen, func(_ string, at time.Time) bool { return now.Sub(at) >= grantTime })
	granted := map[string]struct{}{}
	for name := range s.unseen {
		granted[name] = struct{}{}
	}
	for by, answer := range s.answers {
		for _, name := range answer.Go {
			if by != r.By && now.Sub(answer.at) < grantTime || by == r.By && slices.Contains(r.Wanted, name) {
				granted[name] = struct{}{}
			}
		}
	}
	for _, w := range r.Workers {
		if _, is := granted[w.Node]; is || health.OutForCheck(w.State, w.Reason) {
			out = append(out, w.Node)
		}
	}
	return out
}

// waiting returns the nodes that any check wants out of service and that wait.
func (s *nodeSet) waiting() []string {
	names := map[string]struct{}{}
	for _, answer := range s.answers {
		for _, name := range answer.Wait {
			names[name] = struct{}{}
		}
	}
	return slices.SortedFunc(maps.Keys(names), hostlist.Compare)
}

// tell calls changed for a NodeSet.
func (b *Budgets) tell(set types.NamespacedName, differs bool) {
	if differs && b.changed != nil {
		b.changed(set)
	}
}

// Await records that a check is going to ask for every NodeSet; until then it is not known which nodes wait.
func (b *Budgets) Await(by string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.awaited[by] = struct{}{}
}

// Withdraw records that a check wants nothing any more. What Slurm shows of its drains still counts, and so do for a while those that Slurm
// does not show yet.
func (b *Budgets) Withdraw(by string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, set := range b.sets {
		before := set.waiting()
		set.letGo(by, nil)
		delete(set.answers, by)
		b.tell(name, !slices.Equal(before, set.waiting()))
	}
}

// Forget drops what is known of a NodeSet, such as one that has no workers any more.
func (b *Budgets) Forget(set types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.sets[set]; known {
		delete(b.sets, set)
		b.tell(set, true)
	}
}

// Notify has changed called with each NodeSet of which other nodes wait than before. It must not block, and not call the budgets.
func (b *Budgets) Notify(changed func(types.NamespacedName)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changed = changed
}

// Limit returns how many of a number of workers may be out of service for checks.
func (b *Budgets) Limit(workers int) int { return b.limit.Of(workers) }

// Status is how the disruption budget of one NodeSet is.
type Status struct {
	// Known is true if every awaited check has asked.
	Known bool
	// Waiting are the Slurm nodes that checks want out of service and that wait, in the order of host lists.
	Waiting []string
	// Out is how many of Workers are out of service for checks, and Limit how many may be.
	Out, Workers, Limit int
}

// Of returns how the disruption budget of a NodeSet is.
func (b *Budgets) Of(set types.NamespacedName) Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.sets[set]
	if s == nil {
		return Status{Known: len(b.awaited) == 0}
	}
	return Status{Known: b.known(s), Waiting: s.waiting(), Out: s.out, Workers: s.workers, Limit: b.limit.Of(s.workers)}
}

// known reports whether every awaited check has asked.
func (b *Budgets) known(s *nodeSet) bool {
	for by := range b.awaited {
		if _, asked := s.answers[by]; !asked {
			return false
		}
	}
	return true
}
