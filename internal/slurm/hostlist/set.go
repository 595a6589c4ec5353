// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package hostlist

import (
	"iter"
	"maps"
	"slices"
)

// Set is a set of node names. The zero value is an empty set that can be read but not added to; the operations return
// new sets and leave their operands alone.
type Set map[string]struct{}

// SetOf makes a set of names.
func SetOf(names ...string) Set { return Collect(slices.Values(names)) }

// Collect makes a set of the names that seq yields.
func Collect(seq iter.Seq[string]) Set {
	s := make(Set)
	for name := range seq {
		s.Add(name)
	}
	return s
}

// ParseSet reads an expression into a set. More than limit names, repeated ones counted, are an error.
func ParseSet(expr string, limit int) (Set, error) {
	e, err := parseWithin(expr, limit)
	if err != nil {
		return nil, err
	}
	return Collect(e.All()), nil
}

// Add puts name into the set.
func (s Set) Add(name string) { s[name] = struct{}{} }

// Contains reports whether name is in the set.
func (s Set) Contains(name string) bool {
	_, ok := s[name]
	return ok
}

// Len is the number of names.
func (s Set) Len() int { return len(s) }

// Union is the set of the names in s, in other or in both.
func (s Set) Union(other Set) Set {
	out := make(Set, len(s)+len(other))
	maps.Copy(out, s)
	maps.Copy(out, other)
	return out
}

// Difference is the set of the names in s that are not in other.
func (s Set) Difference(other Set) Set {
	out := make(Set)
	for name := range s {
		if !other.Contains(name) {
			out.Add(name)
		}
	}
	return out
}

// Intersection is the set of the names in both s and other.
func (s Set) Intersection(other Set) Set {
	out := make(Set)
	for name := range s {
		if other.Contains(name) {
			out.Add(name)
		}
	}
	return out
}

// Sorted returns the names in natural order (see Compare).
func (s Set) Sorted() []string { return slices.SortedFunc(maps.Keys(s), Compare) }

// String is the set as an expression, see Compress.
func (s Set) String() string { return Compress(slices.Collect(maps.Keys(s))) }
