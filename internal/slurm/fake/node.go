// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
)

// Lose lets slurmctld notice that nodes do not respond: they are DOWN, and their jobs are requeued.
func (s *Slurm) Lose(names ...string) {
	defer s.lock()()
	for _, name := range names {
		if n := s.nodes[name]; n != nil {
			n.notResponding = true
			s.setDown(n, "Not responding", "slurm")
		}
	}
	s.schedule()
}

// Update changes nodes as "scontrol update" of some user does. It returns what Slurm would say.
func (s *Slurm) Update(user, nodes, state, reason string) error {
	defer s.lock()()
	if e := s.update(user, []string{nodes}, change{state: state, reason: reason}); e != nil {
		return fmt.Errorf("updating %s: %s", nodes, e.Text)
	}
	return nil
}

// Delete deletes a node's record, as "scontrol delete" does.
func (s *Slurm) Delete(name string) error {
	defer s.lock()()
	if e := s.remove(name); e != nil {
		return fmt.Errorf("deleting %s: %s", name, e.Text)
	}
	return nil
}

// Node returns what slurmctld has on a node, and whether it has it.
func (s *Slurm) Node(name string) (NodeStatus, bool) {
	defer s.lock()()
	n, ok := s.nodes[name]
	if !ok {
		return NodeStatus{}, false
	}
	return NodeStatus{
		State: s.state(n), Reason: n.reason, ReasonUser: n.reasonUser, Comment: n.comment, Topology: n.Topology,
		Features: slices.Clone(n.Features), ActiveFeatures: slices.Clone(n.active), AllocCPUs: n.allocated(),
		Jobs: n.jobs(), Record: n.Node, Registered: n.registered,
	}, true
}

// Names returns the names of all nodes, in Slurm's order.
func (s *Slurm) Names() []string {
	defer s.lock()()
	return slices.Clone(s.order)
}

// state renders the base state and the flags, in the order in which Slurm writes flags.
func (s *Slurm) state(n *node) []string {
	var state []string
	used := 0
	for _, cpus := range n.running {
		used += cpus
	}
	switch {
	case n.down:
		state = append(state, "DOWN")
	case used >= n.CPUs:
		state = append(state, "ALLOCATED")
	case used > 0, s.occupied(n):
		state = append(state, "MIXED")
	default:
		state = append(state, "IDLE")
	}
	if n.drain {
		state = append(state, "DRAIN")
	}
	if n.fail {
		state = append(state, "FAIL")
	}
	if len(n.completing) > 0 {
		state = append(state, "COMPLETING")
	}
	if r := s.reserved(n); r != nil {
		state = append(state, map[bool]string{true: "MAINTENANCE", false: "RESERVED"}[r.has("MAINT")])
	}
	if n.notResponding {
		state = append(state, "NOT_RESPONDING")
	}
	if n.invalid {
		state = append(state, "INVALID_REG")
	}
	return append(state, "DYNAMIC_NORM")
}

// allocated counts the CPUs that are not free: those of completing jobs are not free yet.
func (n *node) allocated() int {
	used := 0
	for _, cpus := range n.running {
		used += cpus
	}
	for _, cpus := range n.completing {
		used += cpus
	}
	return used
}

// jobs are those that occupy the node, whatever its state shows of them.
func (n *node) jobs() []int64 {
	var ids []int64
	for _, jobs := range []map[int64]int{n.running, n.suspended, n.completing} {
		ids = slices.AppendSeq(ids, maps.Keys(jobs))
	}
	slices.Sort(ids)
	return ids
}

// busy is what Slurm calls so: suspended jobs do not count.
func (n *node) busy() bool { return len(n.running)+len(n.completing) > 0 }

func (n *node) usable() bool { return !n.spoken() && !n.notResponding }

// clearReason forgets why a node was drained or down when it is neither any more. Slurm before 25.05 does so only when
// the next job starts there.
func (s *Slurm) clearReason(n *node) {
	if !s.old() && !n.spoken() {
		n.dropReason()
	}
}

func (n *node) dropReason() { n.reason, n.reasonUser, n.reasonTime = "", "", time.Time{} }

// spoken says whether a node is kept from jobs for a reason.
func (n *node) spoken() bool { return n.drain || n.down || n.fail }

func (n *node) setReason(reason, user string, now time.Time) {
	// Slurm takes an empty reason for none given.
	if reason != "" {
		n.reason, n.reasonUser, n.reasonTime = reason, user, now
	}
}

// setDown takes a node down and requeues its jobs.
func (s *Slurm) setDown(n *node, reason, user string) {
	n.down = true
	n.setReason(reason, user, s.clock)
	for _, jobs := range []map[int64]int{n.running, n.suspended} {
		for id := range jobs {
			s.requeue(s.jobs[id])
		}
	}
	for id := range n.completing {
		s.release(s.jobs[id])
	}
	s.nodeTime = s.clock
}

// A change is what an update asks for.
type change struct {
	state    string
	reason   string
	comment  *string
	extra    *string
	topology *string
	features *[]string
	active   *[]string
}

// maxNodes bounds what a hostlist expression may stand for.
const maxNodes = 1 << 17

// update changes the nodes of hostlist expressions, in their order and up to the first one that is refused.
func (s *Slurm) update(user string, lists []string, c change) *Error {
	if user != "slurm" && user != "root" {
		return &Error{Number: 2010, Text: "Invalid user id"}
	}
	for _, list := range lists {
		names, err := hostlist.Expand(list, maxNodes)
		if err != nil || len(names) == 0 {
			return invalidName()
		}
		for _, name := range names {
			n := s.nodes[name]
			if n == nil {
				return invalidName()
			}
			if e := s.change(n, user, c); e != nil {
				return e
			}
		}
	}
	s.schedule()
	return nil
}

func invalidName() *Error { return &Error{Number: 2018, Text: "Invalid node name specified"} }

func (s *Slurm) change(n *node, user string, c change) *Error {
	if n.invalid && (c.state == "UNDRAIN" || c.state == "RESUME" || c.state == "IDLE") {
		return s.invalidTransition()
	}
	switch c.state {
	case "":
		// Slurm keeps a reason only of what it is a reason for.
		if s.old() || n.spoken() {
			n.setReason(c.reason, user, s.clock)
		}
	case "DRAIN":
		n.drain, n.fail = true, false
		n.setReason(c.reason, user, s.clock)
	case "FAIL":
		n.fail = true
		n.setReason(c.reason, user, s.clock)
	case "UNDRAIN":
		n.drain = false
		s.clearReason(n)
	case "RESUME", "IDLE":
		if c.state == "RESUME" && !n.spoken() {
			return s.invalidTransition()
		}
		n.drain, n.down, n.fail = false, false, false
		s.clearReason(n)
	case "DOWN":
		s.setDown(n, c.reason, user)
	default:
		return s.invalidTransition()
	}
	if e := n.describe(c); e != nil {
		return e
	}
	s.nodeTime = s.clock
	return nil
}

// invalidTransition is the refusal of a state that a node cannot take, or that nobody can set.
func (s *Slurm) invalidTransition() *Error {
	if s.old() {
		return &Error{Number: 2028, Text: "Invalid node state specified"}
	}
	return &Error{Number: 2180, Text: "Invalid node state transition"}
}

// describe changes what is neither state nor reason.
func (n *node) describe(c change) *Error {
	for _, field := range []struct {
		value *string
		to    *string
	}{{c.comment, &n.comment}, {c.extra, &n.Extra}, {c.topology, &n.Topology}} {
		if field.value != nil {
			*field.to = *field.value
		}
	}
	return n.setFeatures(entries(c.features), entries(c.active))
}

// entries are those of a list in a message: an empty one counts as none given, and one of an empty string as empty.
func entries(list *[]string) []string {
	switch {
	case list == nil || len(*list) == 0:
		return nil
	case slices.Equal(*list, []string{""}):
		return []string{}
	}
	return *list
}

// setFeatures sets those that are not nil. What is active has to be available.
func (n *node) setFeatures(available, active []string) *Error {
	if available == nil && active == nil {
		return nil
	}
	was := active == nil
	if was {
		active = n.active
	}
	if available == nil {
		available = n.Features
	}
	for _, feature := range active {
		if !slices.Contains(available, feature) {
			return &Error{Number: 2031, Text: "Active features not subset of available features"}
		}
	}
	if was {
		active = available
	}
	n.Features, n.active = slices.Clone(available), slices.Clone(active)
	return nil
}

// remove deletes the nodes of a hostlist expression, in its order and up to the first one that is refused.
func (s *Slurm) remove(list string) *Error {
	names, err := hostlist.Expand(list, maxNodes)
	if err != nil || len(names) == 0 {
		return invalidName()
	}
	for _, name := range names {
		if e := s.removeOne(name); e != nil {
			return e
		}
	}
	return nil
}

func (s *Slurm) removeOne(name string) *Error {
	n := s.nodes[name]
	switch {
	case n == nil:
		return invalidName()
	case n.busy(), s.reserved(n) != nil: // seen on 26.05
		return &Error{Number: 2016, Text: "Requested nodes are busy"}
	}
	delete(s.nodes, name)
	s.order = slices.DeleteFunc(s.order, func(other string) bool { return other == name })
	s.nodeTime = s.clock
	return nil
}
