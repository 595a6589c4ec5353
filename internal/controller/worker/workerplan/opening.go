// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan

import "time"

// AnnouncementTimeout is how long after an Opening the write to Slurm may leave: docs/decisions/015.
const AnnouncementTimeout = time.Minute

// announced reports whether the pod already shows that jobs are about to be let onto the node. Another operator that believes to lead then
// fails with what it decided before, and leaves the pod alone later: docs/decisions/015. An Opening of this process is good for one more
// write to Slurm.
func (w *Worker) announced() bool {
	return !w.Announced.IsZero() && w.Now.Before(w.Announced.Add(AnnouncementTimeout))
}

// mayOpen reports whether a write that is under way may let jobs onto the node at any moment.
func (w *Worker) mayOpen() bool { return w.Now.Before(w.OpeningUntil) }
