// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"cmp"
	"iter"
	"strconv"
	"strings"
)

// An UnknownKey is a key, or an option behind one, that a file does not have in any version known to this package. It may
// be a typing error, for which slurmctld would not start, or come from a newer Slurm.
type UnknownKey struct {
	Problem
	// Meant is the key that was probably meant; empty if none is similar.
	Meant string
}

// Unknown reports the unknown keys of slurm.conf, cgroup.conf and gres.conf. Other files report nothing.
func (d *Document) Unknown() []UnknownKey {
	var unknown []UnknownKey
	for _, e := range d.entries {
		if e.Key == "" || e.Kind == Include {
			continue
		}
		if keys := keysOf(d.file); keys != "" && !listed(e.Key, keys) {
			unknown = append(unknown, unknownKey(e, e.Key, keys, d.file.String()))
			continue
		}
		keys := d.file.optionsOf(e.Key)
		for _, o := range e.Options {
			if keys != "" && !listed(o.Key, keys) {
				unknown = append(unknown, unknownKey(e, o.Key, keys, e.Key))
			}
		}
	}
	return unknown
}

func unknownKey(e Entry, key, keys, owner string) UnknownKey {
	u := UnknownKey{
		Problem: Problem{Line: e.Line, Key: key, Message: owner + " is not known to have this key"},
		Meant:   similar(key, strings.FieldsSeq(keys), 2),
	}
	if owner == e.Key {
		u.Key, u.Message = e.Key+"="+e.Value+" "+key, owner+" is not known to have this option"
	}
	if u.Meant != "" {
		u.Message += "; did you mean " + u.Meant + "?"
	}
	return u
}

// CompareReleases compares the first two numbers of two Slurm releases such as 26.05.5; it is negative when a is the older
// one. Numbers that are missing or no numbers count as zero.
func CompareReleases(a, b string) int {
	ma, na := numbers(a)
	mb, nb := numbers(b)
	return cmp.Or(cmp.Compare(ma, mb), cmp.Compare(na, nb))
}

func numbers(release string) (major, minor int) {
	first, rest, _ := strings.Cut(release, ".")
	second, _, _ := strings.Cut(rest, ".")
	major, _ = strconv.Atoi(first)
	minor, _ = strconv.Atoi(second)
	return major, minor
}

// partitionOptions are what may follow PartitionName on its line, slurm.conf(5) PARTITION CONFIGURATION, of all versions.
const partitionOptions = `
	AllocNodes AllowAccounts AllowGroups AllowQos Alternate CpuBind Default DefaultTime DefCpuPerGPU DefMemPerCPU
	DefMemPerGPU DefMemPerNode DenyAccounts DenyQos DisableRootJobs ExclusiveTopo ExclusiveUser GraceTime Hidden LLN
	MaxCPUsPerNode MaxCPUsPerSocket MaxMemPerCPU MaxMemPerGPU MaxMemPerNode MaxNodes MaxTime MinNodes Nodes
	OverSubscribe OverTimeLimit PartitionName PowerDownOnIdle PreemptMode Priority PriorityJobFactor PriorityTier QOS
	ReqResv ResumeTimeout RootOnly SelectTypeParameters Shared State SuspendTime SuspendTimeout Topology
	TRESBillingWeights`

// similar finds the word that is the fewest, and at most farthest, letters away from key; "" if there is none.
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
