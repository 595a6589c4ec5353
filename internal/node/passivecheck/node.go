// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package passivecheck

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
)

// Mebibyte is the unit in which Slurm counts memory, in bytes.
const Mebibyte = 1 << 20

// Node is what "scontrol show node" prints of a node.
type Node struct {
	// States are the base state and the flags, such as IDLE and DRAIN.
	States []string
	// Reason is without the user and the time that scontrol appends; Comment is as it is.
	Reason, Comment string
	// Address is from where the slurmd of the node registered with slurmctld, or a name where that is not known.
	Address string
	// RealMemory is the memory of the node, AllocMemory what jobs have of it, SpecMemory what jobs never get, all in MiB.
	RealMemory, AllocMemory, SpecMemory int64
}

// Drained reports whether the node takes no new jobs because of a drain.
func (n Node) Drained() bool { return n.has("DRAIN") }

func (n Node) has(states ...string) bool {
	return slices.ContainsFunc(n.States, func(have string) bool { return slices.Contains(states, have) })
}

// Busy reports whether Slurm has a job on the node.
func (n Node) Busy() bool { return n.AllocMemory > 0 || n.has("ALLOCATED", "MIXED", "COMPLETING") }

// setBy is what scontrol appends to a reason.
var setBy = regexp.MustCompile(` \[[^][ ]+@[0-9T:-]+\]$`)

// ParseNode reads the output of "scontrol show node" for one node. Fields of the first lines, which only Slurm fills, come
// before those with texts of people, so that no text can pass for a field.
func ParseNode(text string) (Node, error) {
	var n Node
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		key, value, _ := strings.Cut(line, "=")
		switch {
		case key == "State" && n.States == nil:
			state, _, _ := strings.Cut(value, " ")
			for flag := range strings.SplitSeq(state, "+") {
				n.States = append(n.States, strings.TrimRight(flag, "*~#!%$@^-"))
			}
		case key == "NodeAddr" && n.Address == "":
			n.Address, _, _ = strings.Cut(value, " ")
		case key == "RealMemory" && n.RealMemory == 0:
			n.RealMemory, n.AllocMemory = number(line, "RealMemory"), number(line, "AllocMem")
		case strings.Contains(line, "MemSpecLimit=") && n.States == nil:
			n.SpecMemory = number(line, "MemSpecLimit")
		case key == "Comment" && n.Comment == "":
			n.Comment = value
		case key == "Reason":
			n.Reason = setBy.ReplaceAllString(value, "")
		}
	}
	if len(n.States) == 0 || n.States[0] == "" {
		return Node{}, errors.New("the answer has no state of a node")
	}
	return n, nil
}

// number returns the number behind " key=" on a line; 0 when there is none.
func number(line, key string) int64 {
	_, value, found := strings.Cut(" "+line, " "+key+"=")
	if !found {
		return 0
	}
	digits, _, _ := strings.Cut(value, " ")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// maxNodes is how many names a line of a job may have.
const maxNodes = 100_000

// ParseJobMemory reads from "scontrol show job --details" how much memory a job has on a node, in MiB. A text of the job's user, such as
// its name, may have line breaks and pass for lines of Slurm's. These are there as well, so that lines that contradict each other are an
// error.
func ParseJobMemory(text, node string) (int64, error) {
	memory, seen := int64(0), false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		names, rest, found := strings.Cut(line, " ")
		if !found || !strings.HasPrefix(names, "Nodes=") || !strings.Contains(rest, "Mem=") {
			continue
		}
		set, err := hostlist.ParseSet(strings.TrimPrefix(names, "Nodes="), maxNodes)
		if err != nil || !set.Contains(node) {
			continue
		}
		says := number(rest, "Mem")
		if seen && says != memory {
			return 0, fmt.Errorf("the job has lines for node %s that contradict each other (%d and %d MiB): a text of its user forges one", node, memory, says)
		}
		memory, seen = says, true
	}
	if seen {
		return memory, nil
	}
	return 0, fmt.Errorf("the job has no line for node %s", node)
}
