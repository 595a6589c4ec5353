// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// Trust is how far a Snapshot may be relied on.
type Trust string

const (
	// Fresh is a snapshot that Slurm confirmed a moment ago.
	Fresh Trust = "Fresh"
	// Stale is a snapshot that was right once: Slurm does not answer, or has not been asked in time.
	Stale Trust = "Stale"
	// Suspect is a snapshot that contradicts what was known, or that Slurm's answers contradict.
	Suspect Trust = "Suspect"
)

// suspectTimeout is how long a sudden loss of nodes stays suspect before it is taken as intended.
const suspectTimeout = 5 * time.Minute

// maxClockDifference is the difference up to which two clocks show the same: Slurm has whole seconds, and an answer takes its time.
const maxClockDifference = 30 * time.Second

// A Snapshot is what is known of a cluster's nodes at one time. It never changes.
type Snapshot struct {
	// Taken is when Slurm was asked for what is in the snapshot, by the cache's clock; zero when it never answered.
	Taken time.Time
	// Listed is when Slurm was asked for its last list; since then it has only answered that nothing changed. What it does not have is
	// known from then.
	Listed time.Time
	// Updated is slurmctld's own time of its last list.
	Updated time.Time
	// Ahead is how far slurmctld's clock is ahead of the cache's, negative when it is behind. It is zero for clocks that show
	// nearly the same, and stays as it is until it is clearly wrong, so that what is computed with it does not waver.
	Ahead time.Duration
	Trust Trust
	// Since is when the trust became what it is.
	Since time.Time
	// Why is why the snapshot is not Fresh, in one line; it is empty when it is.
	Why string
	// Unauthorized is true if the snapshot is not Fresh because Slurm does not accept the token.
	Unauthorized bool
	// Meta is the cluster's name and slurmrestd's release.
	Meta rest.Meta

	// Unrecognised are words in states of nodes that this release does not know, sorted.
	Unrecognised []node.Word

	nodes  map[string]*rest.Node
	places *places
	jobs   *jobTable // nil while nobody wants them, or nothing is known
	// boundExceeded is the bound that the last list of jobs exceeded; empty for none.
	boundExceeded string
	// changedAt is when the list arrived in which a node last differed. unsuspended is when Slurm was last asked for the states of all
	// jobs and no job could hold nodes that look idle.
	changedAt   map[string]time.Time
	unsuspended time.Time
	// staleAfter is the age from which the snapshot is Stale.
	staleAfter time.Duration
	// trusted is the number of nodes in the last list that was not suspect, and lostSince the time since which lists are.
	trusted   int
	lostSince time.Time
	// forgotten are dynamic nodes that vanished together with most others, and have not come back.
	forgotten map[string]bool
	// deleted are nodes that the cache itself deletes and that may be in lists still, with the time when it began to.
	deleted map[string]time.Time
}

// NewSnapshot returns a snapshot with just that content, for tests and tools.
func NewSnapshot(taken time.Time, trust Trust, nodes ...rest.Node) *Snapshot {
	s := &Snapshot{Taken: taken, Listed: taken, Updated: taken, Trust: trust, nodes: make(map[string]*rest.Node, len(nodes)), trusted: len(nodes)}
	for _, n := range nodes {
		s.nodes[n.Name] = &n
	}
	s.places = &places{nodes: s.nodes}
	return s
}

// Node returns what is known of a node, which nobody may change, and whether Slurm has it. The node is nil unless that is
// Yes. It is No only in a Fresh snapshot; in others Yes means that Slurm had it last.
func (s *Snapshot) Node(name string) (n *rest.Node, exists node.Answer) {
	if n, ok := s.nodes[name]; ok {
		return n, node.Yes
	}
	if s.Trust == Fresh {
		return nil, node.No
	}
	return nil, node.Unknown
}

// Forgotten reports whether a node that Slurm does not have vanished between two lists together with most dynamic nodes of the cluster.
// Then nobody deleted its record, which Slurm does only for nodes without jobs: slurmctld has lost its state. What ran there may still
// run. For a cache that has just started it is false.
func (s *Snapshot) Forgotten(name string) bool { return s.forgotten[name] }

// Deleted reports whether the snapshot's record of a node is one that the cache has begun to delete since Slurm was asked. A node that
// registers under the name meanwhile is another one.
func (s *Snapshot) Deleted(name string) bool {
	at, ok := s.deleted[name]
	return ok && !s.Taken.After(at)
}

// State returns the state of a node for decisions. Of a node that Slurm does not have, and of every node while the
// snapshot is not Fresh, it is the zero State, whose answers are all Unknown. Where the list of jobs has none on the node, flags that are
// not recognised are left out, since they do not mean jobs.
func (s *Snapshot) State(name string) node.State {
	state := s.reported(name)
	if state.Doubtful() {
		if jobs, known := s.Jobs(name); known == node.Yes && len(jobs) == 0 {
			return state.Recognised()
		}
	}
	return state
}

// reported is the state of a node as Slurm reports it.
func (s *Snapshot) reported(name string) node.State {
	if n, ok := s.nodes[name]; ok && s.Trust == Fresh {
		return node.Parse(n.State)
	}
	return node.State{}
}

// Reason is Slurm's reason for the state of a node, by Slurm's clock; the zero value if nothing is known of the node.
func (s *Snapshot) Reason(name string) node.Reason {
	if n, _ := s.Node(name); n != nil {
		return ReasonOf(n)
	}
	return node.Reason{}
}

// ReasonOf is Slurm's reason for the state of a node, by Slurm's clock.
func ReasonOf(n *rest.Node) node.Reason {
	return node.Reason{Text: n.Reason, SetBy: n.ReasonUser, At: n.ReasonTime}
}

// Ours is a time of a node by the cache's clock, where Slurm gives it by its own; zero stays zero. A time by the clock of a slurmctld that
// was ahead of the one that answers now would be later than when the node was seen to have it; then it is that.
func (s *Snapshot) Ours(node string, t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	t = t.Add(-s.Ahead)
	if seen, known := s.changedAt[node]; known && t.After(seen.Add(maxClockDifference)) {
		return seen
	}
	return t
}

// Len is the number of nodes.
func (s *Snapshot) Len() int { return len(s.nodes) }

// Nodes goes through all nodes, in no order.
func (s *Snapshot) Nodes() iter.Seq[*rest.Node] { return maps.Values(s.nodes) }

// At are the nodes that have an address, or a host name, in any order. Nobody may change them.
func (s *Snapshot) At(place string) []*rest.Node { return s.places.at(place) }

// at returns the snapshot as seen at now: one that is too old is Stale.
func (s *Snapshot) at(now time.Time) *Snapshot {
	if s.Trust != Fresh || s.staleAfter == 0 || now.Sub(s.Taken) <= s.staleAfter {
		return s
	}
	stale := *s
	stale.Trust, stale.Since = Stale, s.Taken.Add(s.staleAfter)
	stale.Why = fmt.Sprintf("Slurm has not answered for %s", now.Sub(s.Taken).Truncate(time.Second))
	return &stale
}

// following returns the snapshot that follows s when Slurm, asked at asked, answered list and err, and the names of nodes
// that are new, gone or different.
func (s *Snapshot) following(asked time.Time, list rest.NodeList, err error) (next *Snapshot, changed []string) {
	next = new(Snapshot)
	*next = *s
	defer func() {
		if next.Trust != s.Trust {
			next.Since = asked
		}
	}()
	if err != nil {
		next.distrust(err)
		return next, nil
	}
	next.Taken = asked
	if !list.Unchanged {
		next.Listed, next.Updated, next.Meta = asked, list.Updated, list.Meta
		if ahead := list.Updated.Sub(asked); !list.Updated.IsZero() && (ahead-s.Ahead).Abs() > maxClockDifference {
			next.Ahead = ahead.Round(time.Second)
		}
		next.nodes, changed = merge(s.nodes, list.Nodes)
		next.places = &places{nodes: next.nodes}
		next.forgotten = s.forgottenIn(next.nodes)
		if len(changed) > 0 {
			next.Unrecognised = unrecognised(next.nodes)
		}
	}
	next.judge(asked)
	return next, changed
}

// unrecognised are the words in states of nodes that are not known.
func unrecognised(nodes map[string]*rest.Node) []node.Word {
	var words []node.Word
	for _, n := range nodes {
		words = append(words, node.Parse(n.State).Unrecognised()...)
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// distrust notes a failure. An answer that makes no sense is worse than none, and a suspicion is not lifted by silence.
func (s *Snapshot) distrust(err error) {
	s.Why, s.Unauthorized = err.Error(), errors.Is(err, rest.Unauthorized)
	if errors.Is(err, rest.Unavailable) || errors.Is(err, rest.Unauthorized) {
		if s.Trust != Suspect {
			s.Trust = Stale
		}
		return
	}
	s.Trust = Suspect
}

// has reports whether all these nodes are in the last list.
func (s *Snapshot) has(nodes []string) bool {
	return !slices.ContainsFunc(nodes, func(name string) bool { return s.nodes[name] == nil })
}

// forgottenIn are the forgotten nodes when Slurm lists these ones next. Nodes of slurm.conf are always there, and those that the cache
// deletes vanish on purpose.
func (s *Snapshot) forgottenIn(next map[string]*rest.Node) map[string]bool {
	forgotten := map[string]bool{}
	for name := range s.forgotten {
		if next[name] == nil {
			forgotten[name] = true
		}
	}
	var vanished []string
	stayed := 0
	for name, n := range s.nodes {
		_, meant := s.deleted[name]
		switch dynamic := node.Parse(n.State).Has(node.DynamicNorm); {
		case dynamic && next[name] != nil:
			stayed++
		case dynamic && !meant:
			vanished = append(vanished, name)
		}
	}
	if len(vanished) > stayed {
		for _, name := range vanished {
			forgotten[name] = true
		}
	}
	return forgotten
}

// lacks reports whether a node is missing that an earlier snapshot has.
func (s *Snapshot) lacks(earlier *Snapshot) bool {
	for name := range earlier.nodes {
		if _, there := s.nodes[name]; !there {
			return true
		}
	}
	return false
}

// withChanges returns a snapshot that records when nodes were seen to differ.
func (s *Snapshot) withChanges(changed []string, now time.Time) *Snapshot {
	if len(changed) == 0 {
		return s
	}
	next := *s
	next.changedAt = make(map[string]time.Time, len(s.nodes))
	for name := range s.nodes {
		if at, known := s.changedAt[name]; known {
			next.changedAt[name] = at
		}
	}
	for _, name := range changed {
		next.changedAt[name] = now
	}
	return &next
}

// without returns a snapshot that records that nodes are being deleted on purpose.
func (s *Snapshot) without(names []string, now time.Time) *Snapshot {
	next := *s
	next.deleted = maps.Clone(s.deleted)
	if next.deleted == nil {
		next.deleted = make(map[string]time.Time, len(names))
	}
	for _, name := range names {
		if _, there := s.nodes[name]; there {
			next.deleted[name] = now
		}
	}
	return &next
}

// expected is how many nodes there should be, by the last list that was trusted and what was deleted since. It also returns which of
// the latter may still be in lists, because an answer may be older than a deletion.
func (s *Snapshot) expected(now time.Time) (n int, deleted map[string]time.Time) {
	n = s.trusted
	for name, at := range s.deleted {
		if _, there := s.nodes[name]; !there {
			n--
		} else if now.Sub(at) < suspectTimeout {
			if deleted == nil {
				deleted = map[string]time.Time{}
			}
			deleted[name] = at
		}
	}
	return n, deleted
}

// judge trusts a list unless more than half of the nodes vanished since the last list that was trusted. That happens when slurmctld
// came up without its state, and then it would be worst to believe it.
func (s *Snapshot) judge(now time.Time) {
	expected, deleted := s.expected(now)
	if len(s.nodes)*2 < expected {
		if s.lostSince.IsZero() {
			s.lostSince = now
		}
		if now.Sub(s.lostSince) < suspectTimeout {
			s.Trust, s.Unauthorized = Suspect, false
			s.Why = fmt.Sprintf("Slurm lists %d nodes and listed %d before; the operator accepts this if it stays so until %s",
				len(s.nodes), expected, s.lostSince.Add(suspectTimeout).UTC().Format(time.RFC3339))
			return
		}
	}
	s.Trust, s.Why, s.Unauthorized = Fresh, "", false
	s.trusted, s.lostSince, s.deleted = len(s.nodes), time.Time{}, deleted
	if s.boundExceeded != "" {
		s.Trust, s.Why = Suspect, s.boundExceeded
	}
}

// merge makes a map of a list and returns what is new, gone or different. Nodes that are the same stay the same object, so that the
// memory of a list is freed but for what changed.
func merge(old map[string]*rest.Node, list []*rest.Node) (nodes map[string]*rest.Node, changed []string) {
	nodes = make(map[string]*rest.Node, len(list))
	for _, n := range list {
		before, known := old[n.Name]
		switch {
		case !known || !before.Equal(n):
			changed = append(changed, n.Name)
		case before.FreeMemory == n.FreeMemory:
			n = before
		}
		nodes[n.Name] = n
	}
	for name := range old {
		if _, still := nodes[name]; !still {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return nodes, changed
}
