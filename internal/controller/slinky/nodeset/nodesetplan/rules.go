// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan

import "github.com/coxswain-hpc/coxswain/internal/problem/rule"

// Rules returns the lists of rules that decide which workers there are to be, in the order in which they are asked.
func Rules() []rule.Description { return rule.Words(lists()) }

func lists() []rule.Described {
	return []rule.Described{
		&podFates, &powerFates, &powerResumes, &recordSteps, &daemonCauses, &daemonPlaces, &pinned, &sightings, &scheduledUpdates, &rollingUpdates, &podMarks,
		&recordFates, &renewals, &orphanDrains, &orphanDeletions, &departedDeletions, &reservationPlans,
	}
}
