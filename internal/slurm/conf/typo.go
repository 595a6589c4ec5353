// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"fmt"
	"iter"
	"strings"
)

// Unknown reports the entries whose key slurm.conf does not have in any version known to this package, with the key that
// was probably meant. They may be typing errors, for which slurmctld would not start, or keys of a newer Slurm: worth a
// warning, not a refusal. Other files report nothing.
func (d *Document) Unknown() []Problem {
	var problems []Problem
	for _, e := range d.entries {
		if d.file != Slurm || e.Key == "" || d.file.trait(e.Key).known {
			continue
		}
		message := "slurm.conf is not known to have this key"
		if similar := similarKey(e.Key); similar != "" {
			message += "; did you mean " + similar + "?"
		}
		problems = append(problems, Problem{Line: e.Line, Key: e.Key, Message: message})
	}
	return problems
}

// partitionOptions are what may follow PartitionName on its line, slurm.conf(5) PARTITION CONFIGURATION, of all versions.
const partitionOptions = `
	AllocNodes AllowAccounts AllowGroups AllowQos Alternate CpuBind Default DefaultTime DefCpuPerGPU DefMemPerCPU
	DefMemPerGPU DefMemPerNode DenyAccounts DenyQos DisableRootJobs ExclusiveTopo ExclusiveUser GraceTime Hidden LLN
	MaxCPUsPerNode MaxCPUsPerSocket MaxMemPerCPU MaxMemPerGPU MaxMemPerNode MaxNodes MaxTime MinNodes Nodes
	OverSubscribe OverTimeLimit PartitionName PowerDownOnIdle PreemptMode Priority PriorityJobFactor PriorityTier QOS
	ReqResv ResumeTimeout RootOnly SelectTypeParameters Shared State SuspendTime SuspendTimeout Topology
	TRESBillingWeights`

// CheckPartitionOption refuses an option of a PartitionName line that no version of Slurm has and that is one letter away
// from one that it has: slurmctld would not start with it. Other unknown options pass; a newer Slurm may have them.
func CheckPartitionOption(key string) error {
	meant := similar(key, strings.FieldsSeq(partitionOptions), 1)
	if meant == "" || strings.EqualFold(meant, key) {
		return nil
	}
	return fmt.Errorf("a partition has no option %s; did you mean %s?", key, meant)
}

// similarKey finds the key of slurm.conf that is at most two letters away from key; "" if there is none.
func similarKey(key string) string { return similar(key, slurmKeys(), 2) }

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
