// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan

import "github.com/coxswain-hpc/coxswain/internal/problem/rule"

// Rules returns the lists of rules by which Next decides, in the order in which they are asked.
func Rules() []rule.Description { return rule.Words(lists()) }

func lists() []rule.Described {
	return []rule.Described{
		&situations, &absences, &retiredStates, &stayingStates, &endedDrains, &unregisteredEnds, &retiredEnds, &stayingMessages,
		&protections, &conditionsShown, &outOfService, &jobInterest, &deadlines, &troubles, &comments, &drainNotes, &places, &features, &attempts,
	}
}
