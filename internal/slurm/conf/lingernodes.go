// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"slices"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
)

// lingeringReason is Slurm's reason for the drain of a node whose line is to go.
const lingeringReason = "its line in slurm.conf is to go"

// LingerNodes adds to a slurm.conf the nodes that have a line in the one before and none in this one, but for those for which over
// returns true. They are drained. slurmctld 24.11.5 and 26.05.5 end the jobs that run on a node that has no line any more, or that name
// it, when they read their configuration. It returns the names of the nodes that linger. It comes before Linger, which then finds the
// nodes.
//
// A node that is powered up and down, or has no slurmd, keeps its State, without which it would be another one: somebody has to drain it. One
// of State=FUTURE has no jobs.
func (d *Document) LingerNodes(before *Document, over func(name string) bool) []string {
	if before == nil || d.file != Slurm {
		return nil
	}
	have, _ := d.nodeNames()
	var names []string
	var lines []Entry
	var defaults []Option
	for _, e := range before.entries {
		if !e.isLine("NodeName") {
			continue
		}
		if isDefault(e) {
			defaults = override(defaults, e.Options...)
			continue
		}
		all, err := hostlist.Expand(e.Value, maxNodeNames)
		e.Options = override(defaults, e.Options...)
		if err != nil || strings.EqualFold(e.option("State"), "FUTURE") {
			continue
		}
		var left []int
		for i, name := range all {
			if !have.names[name] && !over(name) {
				have.names[name] = true
				names, left = append(names, name), append(left, i)
			}
		}
		if len(left) > 0 {
			lines = append(lines, e.drained().only(all, left)...)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	// Before the defaults of those that stay.
	at := slices.IndexFunc(d.entries, func(e Entry) bool { return e.isLine("NodeName") })
	if at < 0 {
		at = slices.IndexFunc(d.entries, func(e Entry) bool { return e.isLine("NodeSet") || e.isLine("PartitionName") })
	}
	if at < 0 {
		at = len(d.entries)
	}
	d.entries = slices.Insert(d.entries, at, slices.Concat([]Entry{{Kind: Comment, Value: "These nodes are to go when their jobs have ended."}}, lines)...)
	d.keep(func(int) bool { return true })
	return names
}

// Nodes are the names of the nodes that have a line.
func (d *Document) Nodes() []string {
	var names []string
	for _, e := range d.entries {
		if e.isLine("NodeName") && !isDefault(e) {
			some, _ := hostlist.Expand(e.Value, maxNodeNames)
			names = append(names, some...)
		}
	}
	return names
}

// drained is the line of nodes that take no new jobs.
func (e Entry) drained() Entry {
	state := e.option("State")
	if !strings.EqualFold(state, "CLOUD") && !strings.EqualFold(state, "EXTERNAL") {
		e.Options = override(e.Options, Option{"State", "DRAIN"}, Option{"Reason", lingeringReason})
	}
	e.Line = 0
	return e
}

// only returns lines for some of the nodes of a line: one, or one per node where each has an address or a port of its own.
func (e Entry) only(all []string, left []int) []Entry {
	if len(left) == len(all) {
		return []Entry{e}
	}
	own := map[int][]string{}
	for i, o := range e.Options {
		if values := ownValues(o); len(values) == len(all) && len(all) > 1 {
			own[i] = values
		}
	}
	if len(own) == 0 {
		var names []string
		for _, i := range left {
			names = append(names, all[i])
		}
		e.Value = hostlist.Compress(names)
		return []Entry{e}
	}
	var lines []Entry
	for _, i := range left {
		line := e
		line.Value, line.Options = all[i], slices.Clone(e.Options)
		for option, values := range own {
			line.Options[option].Value = values[i]
		}
		lines = append(lines, line)
	}
	return lines
}

// ownValues are the values of an option that has one for each node of a line; nil for others.
func ownValues(o Option) []string {
	if !slices.ContainsFunc([]string{"NodeAddr", "NodeHostname", "Port", "BcastAddr"}, func(key string) bool { return strings.EqualFold(o.Key, key) }) {
		return nil
	}
	// A list of numbers alone is none of names.
	const prefix = "p"
	values, err := hostlist.Expand(prefix+o.Value, maxNodeNames)
	if !strings.HasPrefix(o.Value, "[") {
		values, err = hostlist.Expand(o.Value, maxNodeNames)
	} else {
		for i := range values {
			values[i] = strings.TrimPrefix(values[i], prefix)
		}
	}
	if err != nil {
		return nil
	}
	return values
}
