// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"iter"
	"strings"
)

// An UnknownKey is a key, or an option behind one, that a file does not have, in any version known to this package or in that of a
// release. slurmctld ends with it, unless it is a newer one.
type UnknownKey struct {
	Problem
	// Meant is the key that was probably meant; empty if none is similar.
	Meant string
	// Newer is true if a release newer than the requested one has it.
	Newer bool
}

// Unknown reports the keys of slurm.conf, cgroup.conf and gres.conf that no release has, and those that the given release of Slurm,
// such as 26.05.5, does not have; an empty one is any. Other files report nothing.
func (d *Document) Unknown(release string) []UnknownKey {
	var unknown []UnknownKey
	look := func(e Entry, owner, key, keys string) bool {
		why, newer := d.file.elsewhere(owner, key, release)
		switch {
		case keys == "" || listed(key, keys) && why == "":
			return true
		case why == "":
			unknown = append(unknown, d.unknownKey(e, owner, key, keys))
		default:
			unknown = append(unknown, UnknownKey{Problem: Problem{Line: e.Line, Key: e.named(owner, key), Message: why}, Newer: newer})
		}
		return false
	}
	for _, e := range d.entries {
		if e.Key == "" || e.Kind == Include || !look(e, "", e.Key, keysOf(d.file)) {
			continue
		}
		for _, o := range e.Options {
			look(e, e.Key, o.Key, d.file.optionsOf(e.Key))
		}
	}
	return unknown
}

// named is how problems name a key of an entry, or an option behind it.
func (e Entry) named(owner, key string) string {
	if owner == "" {
		return key
	}
	return e.Key + "=" + e.Value + " " + key
}

func (d *Document) unknownKey(e Entry, owner, key, keys string) UnknownKey {
	u := UnknownKey{
		Problem: Problem{Line: e.Line, Key: e.named(owner, key), Message: d.file.String() + " has no key of this name that the operator knows"},
		Meant:   similar(key, strings.FieldsSeq(keys), 2),
	}
	if owner != "" {
		u.Message = owner + " has no option of this name that the operator knows"
	}
	if u.Meant != "" {
		u.Message += "; did you mean " + u.Meant + "?"
	}
	return u
}

// partitionOptions are what may follow PartitionName on its line, slurm.conf(5) PARTITION CONFIGURATION, of all versions.
const partitionOptions = `
	AllocNodes AllowAccounts AllowGroups AllowQos Alternate CpuBind Default DefaultTime DefCpuPerGPU DefMemPerCPU
	DefMemPerGPU DefMemPerNode DenyAccounts DenyQos DisableRootJobs Exclusive ExclusiveTopo ExclusiveUser GraceTime Hidden LLN
	MaxCPUsPerNode MaxCPUsPerSocket MaxMemPerCPU MaxMemPerNode MaxNodes MaxTime MinNodes Nodes
	OverSubscribe OverTimeLimit PartitionName PowerDownOnIdle PreemptMode Priority PriorityJobFactor PriorityTier QOS
	ReqResv ResumeTimeout RootOnly SelectTypeParameters Shared State SuspendTime SuspendTimeout Topology
	TRESBillingWeights`

// similar finds the word that is the fewest letters away from key, at most farthest; "" if there is none.
func similar(key string, words iter.Seq[string], farthest int) string {
	best, distance := "", farthest+1
	for k := range words {
		// Keys whose lengths differ by more need more letters anyway.
		if max(len(k), len(key))-min(len(k), len(key)) >= distance {
			continue
		}
		if n := editDistance(strings.ToLower(k), strings.ToLower(key)); n < distance {
			best, distance = k, n
		}
	}
	return best
}

// editDistance is the number of letters to insert, delete or replace to get from a to b (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
