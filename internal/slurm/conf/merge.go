// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"slices"
	"strings"
)

// Owned lists what users must not change: keys ("ClusterName") and single items of sets ("AuthAltParameters:jwt_key").
// Case does not matter.
type Owned []string

func (o Owned) key(key string) bool {
	return slices.ContainsFunc(o, func(owned string) bool { return strings.EqualFold(owned, key) })
}

func (o Owned) item(key, item string) bool {
	name, _, _ := strings.Cut(item, "=")
	return o.key(key + ":" + name)
}

// Merge puts what a user wrote on top of base and returns the result; neither argument changes.
//
//   - A scalar replaces the one in base where that stands, else it is appended.
//   - A set unites with the one in base, see Document.Add.
//   - A repeated line is appended, in the user's order. It takes away lines of base with the same key and value: a user's
//     PartitionName=main replaces the generated one as a whole. It does not take over their place, because a line
//     PartitionName=DEFAULT of the user must stay before the user's lines it is meant for. DEFAULT lines replace nothing,
//     neither do the lines of gres.conf, of which many begin alike.
//   - What base already has is left where it is.
//   - Comments and sections of the user are dropped.
//
// An entry that sets an owned key to something else than base does is left out and reported, an owned item of a set
// likewise.
func Merge(base, user *Document, owned Owned) (*Document, []Problem) {
	d := base.Clone()
	lines := linesOf(base)
	displaced := map[int]bool{}
	var problems []Problem
	for _, e := range user.Entries() {
		if e.Kind == Section || e.Kind == Comment || base.says(e, lines) {
			continue
		}
		if owned.key(e.Key) {
			problems = append(problems, ownedProblem(e))
			continue
		}
		switch e.Kind {
		case Set:
			problems = append(problems, base.refuseItems(&e, owned)...)
			d.unite(e)
		case Repeated, Include:
			if !isDefault(e) && d.file != Gres {
				for _, i := range lines.named[e.name()] {
					displaced[i] = true
				}
			}
			d.push(e)
		default:
			d.add(e)
		}
	}
	// Entries are only appended or changed in place, so those of base have kept their positions.
	d.keep(func(i int) bool { return !displaced[i] })
	d.dropEmptySections()
	return d, problems
}

// lines are the entries of a document, to be found without going through all.
type lines struct {
	said  map[string]bool
	named map[string][]int
}

func linesOf(d *Document) lines {
	l := lines{said: make(map[string]bool, len(d.entries)), named: make(map[string][]int, len(d.entries))}
	for i, e := range d.entries {
		l.said[e.statement()] = true
		l.named[e.name()] = append(l.named[e.name()], i)
	}
	return l
}

func ownedProblem(e Entry) Problem {
	return Problem{Line: e.Line, Key: e.Key, Message: "it is set by the operator and cannot be set to something else; remove the line"}
}

// says reports whether the document, whose lines are given, already has everything in e.
func (d *Document) says(e Entry, lines lines) bool {
	if e.Kind == Set {
		i := d.index(Set, e.Key)
		if i < 0 {
			return false
		}
		have := splitItems(d.entries[i].Value)
		return slices.Equal(union(e.Key, have, splitItems(e.Value)), have)
	}
	return !isDefault(e) && lines.said[e.statement()]
}

// refuseItems takes those owned items out of e, a set, that differ from the ones in d.
func (d *Document) refuseItems(e *Entry, owned Owned) []Problem {
	var problems []Problem
	have, _ := d.Get(e.Key)
	keep := splitItems(e.Value)
	keep = slices.DeleteFunc(keep, func(item string) bool {
		if !owned.item(e.Key, item) || slices.Contains(splitItems(have), item) {
			return false
		}
		name, _, _ := strings.Cut(item, "=")
		problems = append(problems, Problem{Line: e.Line, Key: e.Key,
			Message: name + " is set by the operator and cannot be set to something else; remove it"})
		return true
	})
	e.Value = joinItems(keep)
	return problems
}

// dropEmptySections removes the banners whose entries have been displaced.
func (d *Document) dropEmptySections() {
	entries := d.entries
	d.keep(func(i int) bool {
		last := i == len(entries)-1
		return entries[i].Kind != Section || !last && entries[i+1].Kind != Section
	})
}

// isDefault recognises the lines that give defaults to those behind them, slurm.conf(5): PartitionName=DEFAULT.
func isDefault(e Entry) bool {
	return e.Kind == Repeated && strings.EqualFold(e.Value, "DEFAULT")
}
