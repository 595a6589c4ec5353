// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import "github.com/coxswain-hpc/coxswain/internal/problem/rule"

// Rules returns the lists of rules by which Decide decides, in the order in which they are asked.
func Rules() []rule.Description { return rule.Words(lists()) }

func lists() []rule.Described {
	return []rule.Described{&degradations, &suspicions, &absences, &replacements}
}
