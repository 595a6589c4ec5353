// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package powerstateplan

import "github.com/coxswain-hpc/coxswain/internal/problem/rule"

// Rules returns the lists of rules by which requests of a NodeSetPowerState are decided.
func Rules() []rule.Description { return rule.Words(lists()) }

func lists() []rule.Described { return []rule.Described{&activeSteps} }
