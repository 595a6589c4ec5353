// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Node is a node as a slurmd registers it. What is zero gets the value in parentheses.
//
// The first registration makes the record. Later ones leave it as it is: another number of CPUs, weight or list of
// features reaches Slurm only after the record was deleted.
type Node struct {
	Name         string
	Address      string // (Name)
	Hostname     string // (Name)
	CPUs         int    // (64)
	RealMemory   int64  // MiB (512000)
	Weight       int    // (1)
	Features     []string
	Partitions   []string // (main)
	Gres         string
	InstanceID   string
	InstanceType string
	Extra        string
	Topology     string
	Version      string // (the cluster's release)
	// CoreSpecCount and MemSpecLimit (MiB) are what jobs may not use.
	CoreSpecCount int
	MemSpecLimit  int64
	// Machine is what slurmd finds, where that differs from its configuration.
	Machine Machine

	// Boot is true if slurmd runs with -b: it takes its own start for the boot of the machine.
	Boot bool
	// Drained is the reason with which a record is made drained (State=DRAIN Reason=…); empty makes it undrained.
	Drained string

	external bool // it has no slurmd
	cloud    bool // it was made powered down
}

// DrainedIn is the reason with which a slurmd with these arguments makes its record drained; empty for one that does not.
func DrainedIn(args []string) string {
	for _, arg := range args {
		if _, after, ok := strings.Cut(arg, ` State=DRAIN Reason="`); ok {
			reason, _, _ := strings.Cut(after, `"`)
			return reason
		}
	}
	return ""
}

// Machine is the hardware below a slurmd. What is zero is as in the Node.
type Machine struct {
	CPUs       int
	RealMemory int64 // MiB
	// Gres is what slurmd finds of generic resources: "gpu:2"; "none" is nothing.
	Gres string
}

// Register lets a slurmd register as a dynamic node. A known node keeps its record, its comment, its drain and the reason
// of that, and is no longer down, as with ReturnToService=2. One that offers less than its record wants is INVALID_REG.
func (s *Slurm) Register(nodes ...Node) {
	defer s.lock()()
	for _, registration := range nodes {
		s.register(registration)
	}
	s.schedule()
}

func (s *Slurm) register(registration Node) {
	registration = s.complete(registration)
	n := s.nodes[registration.Name]
	if n == nil {
		n = &node{Node: registration, active: registration.Features, running: map[int64]int{}, suspended: map[int64]int{}, completing: map[int64]int{}}
		n.weight, n.power = registration.Weight, powerOf(registration)
		if registration.Drained != "" {
			n.drain = true
			n.setReason(registration.Drained, "slurm", s.clock)
		}
		s.nodes[registration.Name] = n
		s.order = append(s.order, registration.Name)
	} else {
		s.registerAgain(n, registration)
	}
	n.slurmd, n.gone = registration, false
	n.registered = s.clock
	s.nodeTime = s.clock
	if n.power != PoweredUp && !n.powersUp(registration) {
		return
	}
	n.power = PoweredUp
	s.validate(n, registration)
}

// registerAll lets the slurmds that respond register, as slurmctld has them do when it has started or has read its configuration.
// A node that was set down is no longer down then, and changes of its weight are forgotten.
func (s *Slurm) registerAll() {
	for _, name := range s.order {
		n := s.nodes[name]
		n.weight = n.Weight
		if !n.notResponding && !n.gone && n.power == PoweredUp {
			s.registerAgain(n, n.slurmd)
			s.validate(n, n.slurmd)
		}
	}
	s.nodeTime = s.clock
	s.schedule()
}

// startAnew restarts the slurmds that respond, as they do to read another configuration.
func (s *Slurm) startAnew() {
	for _, n := range s.nodes {
		if !n.notResponding && !n.gone && !s.keepsRunning {
			n.registered = s.clock
		}
	}
}

// KeepRunning sets whether slurmds keep the configuration they have when they are to read another one.
func (s *Slurm) KeepRunning(keep bool) {
	defer s.lock()()
	s.keepsRunning = keep
}

// registerAgain changes the little of a record that a registration changes.
func (s *Slurm) registerAgain(n *node, registration Node) {
	n.Address, n.Hostname, n.Version, n.Machine = registration.Address, registration.Hostname, registration.Version, registration.Machine
	if !s.old() {
		return
	}
	n.InstanceID, n.InstanceType = registration.InstanceID, registration.InstanceType
	if registration.Extra != "" {
		n.Extra = registration.Extra
	}
}

// validate compares what a slurmd offers with the record. Too little drains the node, unless it is down; enough again does not end that
// drain.
func (s *Slurm) validate(n *node, registration Node) {
	missing := strings.Join(n.missing(registration), ", ")
	if registration.CoreSpecCount != 0 {
		n.CoreSpecCount = registration.CoreSpecCount
	}
	n.invalid = missing != ""
	s.heard(n)
	if missing == "" {
		return
	}
	if !n.down && !n.drain {
		n.drain = true
		// Slurm before 25.05 keeps a reason that an earlier drain has left behind.
		if s.old() && n.reason != "" {
			return
		}
	}
	if n.reason != missing {
		n.setReason(missing, "slurm", s.clock)
	}
}

// missing returns in Slurm's words what a registration lacks of the record. Another number of reserved cores is refused once:
// the record has it from then on.
func (n *node) missing(r Node) []string {
	var out []string
	for wanted := range strings.SplitSeq(n.Gres, ",") {
		kind, count := gresCount(wanted)
		if found := findGres(r.Machine.Gres, kind); found < count {
			out = append(out, fmt.Sprintf("gres/%s count reported lower than configured (%d < %d)", kind, found, count))
		}
	}
	if r.Machine.CPUs < n.CPUs {
		out = append(out, "Low socket*core*thread count", "Low CPUs")
	}
	if r.Machine.RealMemory < n.RealMemory {
		out = append(out, fmt.Sprintf("Low RealMemory (reported:%d < 100.00%% of configured:%d)", r.Machine.RealMemory, n.RealMemory))
	}
	if r.CoreSpecCount != 0 && r.CoreSpecCount != n.CoreSpecCount {
		out = append(out, "CoreSpec differ")
	}
	return out
}

// gresCount splits "gpu:a100:2" into kind and count.
func gresCount(entry string) (kind string, count int) {
	parts := strings.Split(entry, ":")
	kind = parts[0]
	if len(parts) == 1 {
		return kind, min(1, len(kind))
	}
	count, err := strconv.Atoi(strings.TrimSuffix(parts[len(parts)-1], "K"))
	if err != nil {
		count = 1
	}
	return kind, count
}

// findGres counts a kind of resource in a list of them.
func findGres(list, kind string) (total int) {
	for entry := range strings.SplitSeq(list, ",") {
		if k, count := gresCount(entry); k == kind {
			total += count
		}
	}
	return total
}

func (s *Slurm) complete(n Node) Node {
	for _, field := range []*string{&n.Address, &n.Hostname} {
		if *field == "" {
			*field = n.Name
		}
	}
	if n.CPUs == 0 {
		n.CPUs = 64
	}
	if n.RealMemory == 0 {
		n.RealMemory = 512000
	}
	if n.Weight == 0 {
		n.Weight = 1
	}
	if n.Partitions == nil {
		n.Partitions = []string{"main"}
	}
	if n.Version == "" {
		n.Version = s.options.Release
	}
	if n.Machine.CPUs == 0 {
		n.Machine.CPUs = n.CPUs
	}
	if n.Machine.RealMemory == 0 {
		n.Machine.RealMemory = n.RealMemory
	}
	if n.Machine.Gres == "" {
		n.Machine.Gres = n.Gres
	}
	return n
}

// node is a record of slurmctld.
type node struct {
	Node
	// slurmd is what its slurmd registered with last.
	slurmd     Node
	gone       bool // it has ended
	weight     int  // as it was changed last
	comment    string
	active     []string // features
	flags      []string // words of its state that come from nowhere else
	reason     string
	reasonUser string
	reasonTime time.Time
	registered time.Time

	drain, down, fail, notResponding, invalid bool
	power                                     Power
	// sinks is true if the node powers down when its jobs have ended.
	sinks bool

	running    map[int64]int // CPUs by running job
	suspended  map[int64]int // CPUs by suspended job, which others may use meanwhile
	completing map[int64]int // CPUs by job that is completing
}

// NodeStatus is what slurmctld has on a node.
type NodeStatus struct {
	State      []string
	Reason     string
	ReasonUser string
	Comment    string
	Topology   string
	// Features are the available ones, ActiveFeatures those that are active.
	Features       []string
	ActiveFeatures []string
	AllocCPUs      int
	// Jobs are those that run, are suspended or complete on the node.
	Jobs []int64
	// Record is what the node was made with, and Registered when its slurmd registered last.
	Record     Node
	Registered time.Time
}

// Answer lets the slurmds of nodes answer slurmctld, which asks them at times of its own. A node that was DOWN, for whatever reason,
// returns to service by that, as with ReturnToService=2; its drain stays. A slurmd that has ended does not answer.
func (s *Slurm) Answer(names ...string) {
	defer s.lock()()
	for _, name := range names {
		if n := s.nodes[name]; n != nil && n.answers() {
			s.heard(n)
		}
	}
	s.schedule()
}

// answers reports whether a node has a slurmd that would answer.
func (n *node) answers() bool { return !n.gone && !n.external && n.power == PoweredUp }

// heard updates a node whose slurmd responds.
func (s *Slurm) heard(n *node) {
	n.notResponding = false
	s.nodeTime = s.clock
	if n.down && !n.invalid {
		n.down = false
		s.clearReason(n)
	}
}
