// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import "strings"

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

// similarKey finds the key of slurm.conf that is at most two letters away from key; "" if there is none.
func similarKey(key string) string {
	const farthest = 2
	best, distance := "", farthest+1
	for k := range slurmKeys() {
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
