// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import "strings"

// File is a kind of configuration file. It decides which keys are sets and which are repeated.
type File int

// The files whose keys this package knows. Plain stands for all others: every key is a scalar, or a repeated line if it
// has options.
const (
	Plain File = iota
	Slurm
	Slurmdbd
	Cgroup
	Gres
)

// String is the name of the file, as in errors.
func (f File) String() string {
	switch f {
	case Slurm:
		return "slurm.conf"
	case Slurmdbd:
		return "slurmdbd.conf"
	case Cgroup:
		return "cgroup.conf"
	case Gres:
		return "gres.conf"
	}
	return "configuration"
}

// Kind is what an entry of a document is, and so how a second one of the same key merges.
type Kind int

const (
	// Scalar is Key=Value; the later one replaces the earlier.
	Scalar Kind = iota
	// Set is Key=item,item; two of them unite.
	Set
	// Repeated is Key=Value with options, or a key that may stand several times; every line counts.
	Repeated
	// Include is a line "include FILE".
	Include
	// Section is a banner comment, ### NAME ###.
	Section
	// Comment is any other comment on a line of its own.
	Comment
)

// trait describes a key of a file.
type trait struct {
	kind Kind
	// options is true if further Key=Value pairs may follow on the line.
	options bool
	// known is true if the file has the key.
	known bool
}

// trait looks up a key. An unknown one is a scalar that may turn out to have options.
func (f File) trait(key string) trait {
	key = strings.ToLower(key)
	if key == includeKey {
		return trait{kind: Include, known: true}
	}
	if t, ok := traits[f][key]; ok {
		return t
	}
	if f == Gres {
		return trait{kind: Scalar, options: true, known: true}
	}
	if f == Slurmdbd || f == Cgroup {
		return trait{kind: Scalar, known: true}
	}
	return trait{kind: Scalar, options: true}
}

// traits are those of the listed keys, in lower case.
var traits = map[File]map[string]trait{ //nolint:gochecknoglobals // a constant table
	Slurm: tabulate(map[string]trait{
		slurmSets: {kind: Set, known: true}, slurmLines: {kind: Repeated, options: true, known: true},
		slurmRepeated: {kind: Repeated, known: true}, slurmScalars: {kind: Scalar, known: true},
	}),
	Slurmdbd: tabulate(map[string]trait{slurmdbdSets: {kind: Set, known: true}}),
	Gres:     tabulate(map[string]trait{gresLines: {kind: Repeated, options: true, known: true}}),
}

// tabulate gives every key of each list the trait of the list.
func tabulate[T any](lists map[string]T) map[string]T {
	table := map[string]T{}
	for list, value := range lists {
		for key := range strings.FieldsSeq(list) {
			table[strings.ToLower(key)] = value
		}
	}
	return table
}
