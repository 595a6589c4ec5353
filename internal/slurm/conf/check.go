// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
)

// maxNodeNames is how many node names are looked at one by one; beyond it duplicates and unknown names go unnoticed here.
const maxNodeNames = 100_000

// CheckValues reports values of a type that a slurmctld of the given release, such as 26.05.5, would end with; an empty one is any. It
// is no proof that slurmctld starts, and it leaves out what only slurmctld can know. Unknown reports unknown keys. Only slurm.conf is
// checked.
//
// A slurmctld that reconfigures with such a file may end, instead of going on as before; hence the checks.
func (d *Document) CheckValues(release string) []Problem {
	var problems []Problem
	for _, e := range d.entries {
		if d.file == Slurm {
			problems = append(problems, e.checkValues(hasAllWords(release))...)
		}
	}
	return problems
}

// CheckNames reports nodes and partitions that stand twice in slurm.conf: slurmctld would end with them as well.
func (d *Document) CheckNames() []Problem {
	if d.file != Slurm {
		return nil
	}
	_, problems := d.nodeNames()
	seen := map[string]bool{}
	for _, e := range d.partitions() {
		if seen[e.Value] {
			problems = append(problems, Problem{Line: e.Line, Key: e.Key, Message: "partition " + e.Value + " is already on an earlier line"})
		}
		seen[e.Value] = true
	}
	return problems
}

// CheckPriority reports usage that is never forgotten: slurmctld ends with a PriorityDecayHalfLife of 0 where PriorityUsageResetPeriod
// is not there, whatever its value. Included files may have it.
func (d *Document) CheckPriority() []Problem {
	if slices.ContainsFunc(d.entries, func(e Entry) bool { return e.Kind == Include || strings.EqualFold(e.Key, "PriorityUsageResetPeriod") }) {
		return nil
	}
	var problems []Problem
	for _, e := range d.entries {
		if total, ok := minutes(e.Value); ok && total == 0 && strings.EqualFold(e.Key, "PriorityDecayHalfLife") {
			problems = append(problems, Problem{Line: e.Line, Key: e.Key, Message: "is 0, which needs PriorityUsageResetPeriod, such as NONE or MONTHLY"})
		}
	}
	return problems
}

// MissingNodes reports partitions of nodes that do not exist, with which slurmctld would end. dynamic reports whether a name belongs to
// a node that registers itself.
func (d *Document) MissingNodes(dynamic func(node string) bool) []Problem {
	nodes, _ := d.nodeNames()
	var problems []Problem
	for _, e := range d.partitions() {
		name, err := nodes.missing(e.option("Nodes"), dynamic)
		key := e.Key + "=" + e.Value + " Nodes"
		if err != nil {
			problems = append(problems, Problem{Line: e.Line, Key: key, Message: err.Error()})
		} else if name != "" {
			problems = append(problems, Problem{Line: e.Line, Key: key,
				Message: fmt.Sprintf("there is no node and no NodeSet %s; give it a NodeName or NodeSet line, or name another one", name)})
		}
	}
	return problems
}

// partitions are the lines of partitions.
func (d *Document) partitions() []Entry {
	var lines []Entry
	for _, e := range d.entries {
		if e.isLine("PartitionName") && !isDefault(e) {
			lines = append(lines, e)
		}
	}
	return lines
}

// checkValues checks the types of the entry's value and options. allWords is true if slurmctld has no word that is not known here.
func (e Entry) checkValues(allWords bool) []Problem {
	var problems []Problem
	report := func(named, key, value string, open, closed map[string]check) {
		checks := []check{open[strings.ToLower(key)], closed[strings.ToLower(key)]}
		if !allWords {
			checks = checks[:1]
		}
		for _, c := range checks {
			if c == nil {
				continue
			}
			if err := c(value); err != nil {
				problems = append(problems, Problem{Line: e.Line, Key: named, Message: err.Error()})
				return
			}
		}
	}
	var open, closed map[string]check
	switch {
	case e.Kind == Scalar || e.Kind == Set:
		report(e.Key, e.Key, e.Value, valueChecks, closedValues)
	case e.isLine("PartitionName"):
		open, closed = partitionChecks, closedPartition
	case e.isLine("NodeName"):
		open, closed = nodeChecks, closedNode
	}
	for _, o := range e.Options {
		report(e.Key+"="+e.Value+" "+o.Key, o.Key, o.Value, open, closed)
	}
	return problems
}

// isLine recognises a repeated line by its key.
func (e Entry) isLine(key string) bool { return e.Kind == Repeated && strings.EqualFold(e.Key, key) }

// option returns the value of an option.
func (e Entry) option(key string) string {
	for _, o := range e.Options {
		if strings.EqualFold(o.Key, key) {
			return o.Value
		}
	}
	return ""
}

// nodeNames are the names on NodeName and NodeSet lines. complete is true if they are all names.
type nodeNames struct {
	names    map[string]bool
	complete bool
}

func (d *Document) nodeNames() (nodeNames, []Problem) {
	n := nodeNames{names: map[string]bool{}, complete: true}
	var problems []Problem
	for _, e := range d.entries {
		switch {
		case e.isLine("NodeSet"):
			n.names[e.Value] = true
		case e.Kind == Include:
			n.complete = false
		case e.isLine("NodeName") && !isDefault(e):
			if p := n.add(e); p != nil {
				problems = append(problems, *p)
			}
		}
	}
	return n, problems
}

// add takes over the names of a NodeName line, each of which may stand once.
func (n *nodeNames) add(e Entry) *Problem {
	expr, err := hostlist.Parse(e.Value)
	if err != nil {
		return &Problem{Line: e.Line, Key: e.Key, Message: err.Error()}
	}
	if len(n.names)+expr.Len() > maxNodeNames {
		n.complete = false
		return nil
	}
	for name := range expr.All() {
		if n.names[name] {
			return &Problem{Line: e.Line, Key: e.Key, Message: "node " + name + " is already on an earlier line"}
		}
		n.names[name] = true
	}
	return nil
}

// missing returns a name of the list that no node has.
func (n nodeNames) missing(list string, dynamic func(string) bool) (string, error) {
	if strings.EqualFold(list, "ALL") {
		return "", nil
	}
	expr, err := hostlist.Parse(list)
	if err != nil || !n.complete || expr.Len() > maxNodeNames {
		return "", err
	}
	for name := range expr.All() {
		if !n.names[name] && (dynamic == nil || !dynamic(name)) {
			return name, nil
		}
	}
	return "", nil
}
