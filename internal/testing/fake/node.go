// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
)

// notResponding is slurmctld's reason for a node that does not respond.
const notResponding = "Not responding"

// Lose lets slurmctld notice that nodes do not respond: they are DOWN, and their jobs are requeued. A node keeps its reason, and
// slurmctld's own words follow it, once if the node is drained; a node that is DOWN already keeps its reason unchanged. slurmctld does
// not notice it for a node whose last registration was refused.
func (s *Slurm) Lose(names ...string) {
	defer s.lock()()
	for _, name := range names {
		n := s.nodes[name]
		if n == nil {
			continue
		}
		if n.invalid {
			n.gone = true
			continue
		}
		n.notResponding = true
		switch {
		case n.down:
			s.nodeTime = s.clock
		case n.reason == "":
			s.setDown(n, notResponding, "slurm")
		case n.drain && strings.HasSuffix(n.reason, notResponding):
			s.setDown(n, n.reason, "slurm")
		default:
			s.setDown(n, n.reason+" : "+notResponding, "slurm")
		}
	}
	s.schedule()
}

// Leave lets the slurmds of nodes end. slurmctld has not noticed yet, and Lose lets it; but they do not register any more when
// it asks them to.
func (s *Slurm) Leave(names ...string) {
	defer s.lock()()
	for _, name := range names {
		if n := s.nodes[name]; n != nil {
			n.gone = true
		}
	}
}

// Update changes nodes as "scontrol update" of some user does. It returns what Slurm would answer.
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
	holder, maintenance := s.reserved(n)
	for _, flag := range []struct {
		set  bool
		name string
	}{
		{n.external, "EXTERNAL"}, {holder != nil, "RESERVED"}, {n.cloud, "CLOUD"}, {n.drain, "DRAIN"}, {len(n.completing) > 0, "COMPLETING"},
		{n.notResponding, "NOT_RESPONDING"}, {n.power == PoweredDown, "POWERED_DOWN"}, {n.fail, "FAIL"},
		{n.power == PoweringUp, "POWERING_UP"}, {n.sinks, "POWER_DOWN"}, {maintenance, "MAINTENANCE"}, {n.invalid, "INVALID_REG"},
	} {
		if flag.set {
			state = append(state, flag.name)
		}
	}
	return append(append(state, n.flags...), "DYNAMIC_NORM")
}

// Flag lets a node have these words in its state as well, as that of another release of Slurm may.
func (s *Slurm) Flag(name string, words ...string) {
	defer s.lock()()
	s.nodes[name].flags, s.nodeTime = slices.Clone(words), s.clock
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

// busy is what Slurm calls busy: suspended jobs do not count.
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

// spoken reports whether a node is kept from jobs by a state with a reason.
func (n *node) spoken() bool { return n.drain || n.down || n.fail }

func (n *node) setReason(reason, user string, now time.Time) {
	// Slurm treats an empty reason as none.
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
			if j := s.jobs[id]; j.KillOnNodeFail {
				s.finish(j, "NODE_FAIL")
			} else {
				s.requeue(j)
			}
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
	weight   *int
}

// maxNodes bounds what a hostlist expression may stand for.
const maxNodes = 1 << 17

// update changes the nodes of hostlist expressions. Slurm takes them in the order of their names, stops at one that it does not know,
// and goes on after one that it refuses.
func (s *Slurm) update(user string, lists []string, c change) *Error {
	if user != "slurm" && user != "root" {
		return &Error{Number: 2010, Text: "Invalid user id"}
	}
	names, ok := sorted(lists)
	if !ok {
		return invalidName()
	}
	var refusal *Error
	for _, name := range names {
		n := s.nodes[name]
		if n == nil {
			refusal = invalidName()
			break
		}
		if e := s.change(n, user, c); e != nil {
			refusal = e
		}
	}
	s.schedule()
	return refusal
}

// sorted are the names of hostlist expressions in their order, each once.
func sorted(lists []string) (names []string, ok bool) {
	for _, list := range lists {
		more, err := hostlist.Expand(list, maxNodes)
		if err != nil || len(more) == 0 {
			return nil, false
		}
		names = append(names, more...)
	}
	slices.SortFunc(names, hostlist.Compare)
	return slices.Compact(names), len(names) > 0
}

func invalidName() *Error { return &Error{Number: 2018, Text: "Invalid node name specified"} }

// change changes one node. Other fields are set even if the state is refused.
func (s *Slurm) change(n *node, user string, c change) *Error {
	n.describe(c)
	n.setReason(c.reason, user, s.clock)
	refusal := s.setState(n, c.state)
	if c.state != "POWER_DOWN" { // which ends a drain only when the node powers down
		s.clearReason(n)
	}
	if e := n.setFeatures(entries(c.features), entries(c.active)); e != nil {
		refusal = e
	}
	s.nodeTime = s.clock
	return refusal
}

// setState sets the state of a node, if it is one that the node can take.
func (s *Slurm) setState(n *node, state string) *Error {
	opens := state == "UNDRAIN" || state == "RESUME" || state == "IDLE"
	if opens && n.invalid {
		return s.invalidTransition()
	}
	switch state {
	case "":
	case "DRAIN":
		n.drain, n.fail = true, false
	case "FAIL":
		n.drain, n.fail = false, true
	case "UNDRAIN":
		n.drain = false
		s.resumed(n)
	case "RESUME", "IDLE":
		if base := s.state(n)[0]; state == "RESUME" && !n.spoken() || state == "IDLE" && base != "IDLE" && base != "DOWN" {
			return s.invalidTransition()
		}
		n.drain, n.down, n.fail = false, false, false
		s.resumed(n)
	case "DOWN":
		s.setDown(n, "", "")
	case "POWER_UP", "POWER_DOWN":
		s.setPower(n, state)
	default:
		return s.invalidTransition()
	}
	return nil
}

// invalidTransition is the refusal of a state that a node cannot take, or that nobody can set.
func (s *Slurm) invalidTransition() *Error {
	if s.old() {
		return &Error{Number: 2028, Text: "Invalid node state specified"}
	}
	return &Error{Number: 2180, Text: "Invalid node state transition"}
}

// describe changes what is neither state nor reason nor feature.
func (n *node) describe(c change) {
	for _, field := range []struct {
		value *string
		to    *string
	}{{c.comment, &n.comment}, {c.extra, &n.Extra}, {c.topology, &n.Topology}} {
		if field.value != nil {
			*field.to = *field.value
		}
	}
	if c.weight != nil {
		n.weight = *c.weight
	}
}

// entries are those of a list in a message: an empty list counts as none, and a list of one empty string as empty.
func entries(list *[]string) []string {
	switch {
	case list == nil || len(*list) == 0:
		return nil
	case slices.Equal(*list, []string{""}):
		return []string{}
	}
	return *list
}

// setFeatures sets those that are not nil. Active features have to be available.
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

// remove deletes the nodes of a hostlist expression, all but those that are refused.
func (s *Slurm) remove(list string) *Error {
	names, ok := sorted([]string{list})
	if !ok {
		return invalidName()
	}
	var refusal *Error
	for _, name := range names {
		if e := s.removeOne(name); e != nil {
			refusal = e
		}
	}
	return refusal
}

func (s *Slurm) removeOne(name string) *Error {
	n := s.nodes[name]
	if n == nil {
		return invalidName()
	}
	if holder, _ := s.reserved(n); holder != nil || n.busy() {
		return &Error{Number: 2016, Text: "Requested nodes are busy"}
	}
	delete(s.nodes, name)
	s.order = slices.DeleteFunc(s.order, func(other string) bool { return other == name })
	s.nodeTime = s.clock
	return nil
}
