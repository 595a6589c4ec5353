// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// Job is a job on the node of a worker.
type Job struct {
	ID   int64
	User string
	// End is when Slurm ends it at the latest; zero for never.
	End time.Time
}

// deadline tells when the last job ends: contract slinky.md §4.7. Slurm is asked for jobs only while somebody waits for
// them, which is while the worker is to go or the node drains for a reason of ours.
func deadline(w Worker, action *Action) {
	action.WantJobs = w.Pod.Retired != "" && w.State.Busy() == node.Yes || w.State.Draining() == node.Yes && w.Reason.Ours() || w.suspects()
	switch {
	case w.Occupied() == node.No, w.State.Busy() == node.No && !w.suspects():
		action.DeadlineKnown = true
	case w.State.Busy() == node.No && w.Occupied() == node.Yes: // nobody knows when jobs that are suspended go on
		action.Deadline, action.DeadlineKnown = nodeset.Never(), true
	case !action.WantJobs || w.JobsKnown != node.Yes || len(w.Jobs) == 0: // somebody else may have asked
	case w.Jobs[len(w.Jobs)-1].End.IsZero():
		action.Deadline, action.DeadlineKnown = nodeset.Never(), true
	default:
		action.Deadline, action.DeadlineKnown = w.Jobs[len(w.Jobs)-1].End, true
	}
}

// waiting says what a retired worker waits for.
func waiting(w Worker) string {
	if w.State.Busy() == node.No && w.Occupied() != node.Yes {
		return "waiting to hear whether jobs are suspended there"
	}
	if w.JobsKnown != node.Yes || len(w.Jobs) == 0 {
		return "waiting for jobs to end"
	}
	last := w.Jobs[len(w.Jobs)-1]
	text := fmt.Sprintf("waiting for job %d", last.ID)
	if len(w.Jobs) > 1 {
		text = fmt.Sprintf("waiting for %d jobs, the last of which is job %d", len(w.Jobs), last.ID)
	}
	if last.User != "" {
		text += " of " + last.User
	}
	if w.State.Busy() == node.No {
		return text + ", which is suspended"
	}
	if last.End.IsZero() {
		return text + ", which has no time limit"
	}
	return text + ", which ends by " + last.End.UTC().Format(time.RFC3339)
}
