// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"slices"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
)

// Linger adds to a slurm.conf the partitions that the one before has and this one lacks, but for those for which over returns true.
// They take no new jobs (State=DRAIN), and the jobs that are in them go on. slurmctld 24.11.5 and 26.05.5 end all jobs of a partition
// that has no line any more when they read their configuration, and requeue none. A lingering partition has those of its nodes that
// there are; dynamic reports whether a name belongs to a node that registers itself. It returns the names of the partitions that
// linger.
//
// What was added is the same whether the document before has a partition by itself or because it lingers.
func (d *Document) Linger(before *Document, over, dynamic func(name string) bool) []string {
	if before == nil || d.file != Slurm {
		return nil
	}
	lines := d.lacking(before, over)
	if len(lines) == 0 {
		return nil
	}
	sets := d.setsOf(before, lines)
	nodes, _ := d.nodeNames()
	for _, e := range sets {
		nodes.names[e.Value] = true
	}
	var names []string
	for i := range lines {
		names = append(names, lines[i].Value)
		nodes.restrict(&lines[i], dynamic)
	}
	for i := range sets {
		nodes.restrict(&sets[i], dynamic)
	}
	// Before the defaults of those that stay.
	at := slices.IndexFunc(d.entries, func(e Entry) bool { return e.isLine("PartitionName") })
	if at < 0 {
		at = len(d.entries)
	}
	d.entries = slices.Insert(d.entries, at, slices.Concat([]Entry{{Kind: Comment, Value: "These are to go when their jobs have ended."}}, sets, lines)...)
	d.keep(func(int) bool { return true })
	return names
}

// Partitions are the names of the partitions that have a line.
func (d *Document) Partitions() []string {
	var names []string
	for _, e := range d.partitions() {
		names = append(names, e.Value)
	}
	return names
}

// lacking are the lines of partitions that the document before has and this one lacks, each with its defaults.
func (d *Document) lacking(before *Document, over func(string) bool) []Entry {
	have := map[string]bool{}
	for _, name := range d.Partitions() {
		have[name] = true
	}
	var lines []Entry
	var defaults []Option
	for _, e := range before.entries {
		switch {
		case !e.isLine("PartitionName"):
		case isDefault(e):
			defaults = override(defaults, e.Options...)
		case !have[e.Value] && !over(e.Value):
			have[e.Value] = true
			options := override(override(defaults, e.Options...), Option{"State", "DRAIN"}, Option{"Default", "NO"})
			lines = append(lines, Entry{Kind: Repeated, Key: "PartitionName", Value: e.Value, Options: options})
		}
	}
	return lines
}

// setsOf are the NodeSet lines of the document before that the partitions need and this one lacks.
func (d *Document) setsOf(before *Document, partitions []Entry) []Entry {
	have := map[string]bool{}
	for _, e := range d.entries {
		if e.isLine("NodeSet") {
			have[e.Value] = true
		}
	}
	needed := map[string]bool{}
	for _, e := range partitions {
		if list, err := hostlist.Expand(e.option("Nodes"), maxNodeNames); err == nil {
			for _, name := range list {
				needed[name] = !have[name]
			}
		}
	}
	var lines []Entry
	for _, e := range before.entries {
		if e.isLine("NodeSet") && needed[e.Value] {
			needed[e.Value] = false
			lines = append(lines, Entry{Kind: Repeated, Key: e.Key, Value: e.Value, Options: slices.Clone(e.Options)})
		}
	}
	return lines
}

// restrict removes from a line nodes that do not exist, with which slurmctld would end.
func (n nodeNames) restrict(e *Entry, dynamic func(string) bool) {
	for i, o := range e.Options {
		if !strings.EqualFold(o.Key, "Nodes") {
			continue
		}
		if name, err := n.missing(o.Value, dynamic); err != nil || name == "" {
			return
		}
		list, _ := hostlist.Expand(o.Value, maxNodeNames) // missing has expanded it
		list = slices.DeleteFunc(list, func(name string) bool { return !n.names[name] && (dynamic == nil || !dynamic(name)) })
		if len(list) == 0 {
			e.Options = slices.Delete(e.Options, i, i+1)
			return
		}
		e.Options[i].Value = hostlist.Compress(list)
		return
	}
}

// override returns options with others laid over them.
func override(options []Option, others ...Option) []Option {
	out := slices.Clone(options)
	for _, other := range others {
		if i := slices.IndexFunc(out, func(o Option) bool { return strings.EqualFold(o.Key, other.Key) }); i >= 0 {
			out[i].Value = other.Value
		} else {
			out = append(out, other)
		}
	}
	return out
}
