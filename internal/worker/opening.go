// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"strings"
	"time"
)

// Opening says that a process of the operator is about to let jobs onto the node of a worker: docs/decisions/015.
type Opening struct {
	At time.Time
	// By tells the process from others.
	By string
}

// String is the Opening as the annotation of a pod has it; empty for the zero Opening.
func (o Opening) String() string {
	if o.At.IsZero() {
		return ""
	}
	return o.At.UTC().Format(time.RFC3339Nano) + " " + o.By
}

// ParseOpening reads the annotation of a pod. What cannot be read is the zero Opening: nobody who lets jobs onto a node writes that.
func ParseOpening(text string) Opening {
	at, by, _ := strings.Cut(text, " ")
	when, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return Opening{}
	}
	return Opening{At: when, By: by}
}

const (
	// AnnouncementTimeout is how long after an Opening the write to Slurm may leave.
	AnnouncementTimeout = time.Minute
	// maxOpeningDuration is how long after an Opening that write may still arrive: it leaves within AnnouncementTimeout, the client gives it up after a
	// minute, and the clocks of two operators may differ by as much.
	maxOpeningDuration = 3 * time.Minute
)

// Over is when nothing is under way any more that followed the Opening, which was seen first at a time; zero for the zero Opening. It was made
// before it was seen, whatever a clock that goes ahead says.
func (o Opening) Over(seen time.Time) time.Time {
	switch {
	case o.At.IsZero():
		return time.Time{}
	case o.At.After(seen):
		return seen.Add(maxOpeningDuration)
	default:
		return o.At.Add(maxOpeningDuration)
	}
}

// announced says that the pod need not say anew that jobs are about to be let onto the node. Another operator that believes to lead is
// refused then what it decided before, and leaves alone what it decides later: docs/decisions/015. An Opening of this process is good for one more write to Slurm.
func (w *Worker) announced() bool {
	return !w.Announced.IsZero() && w.Now.Before(w.Announced.Add(AnnouncementTimeout))
}

// mayOpen says that jobs may be let onto the node at any moment by a write that is under way.
func (w *Worker) mayOpen() bool { return w.Now.Before(w.OpeningUntil) }
