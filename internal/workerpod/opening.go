// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerpod

import (
	"strings"
	"time"
)

// Opening announces that a process of the operator is about to let jobs onto the node of a worker: docs/decisions/015.
type Opening struct {
	At time.Time
	// By identifies the process.
	By string
}

// String returns the Opening as the annotation of a pod has it; empty for the zero Opening.
func (o Opening) String() string {
	if o.At.IsZero() {
		return ""
	}
	return o.At.UTC().Format(time.RFC3339Nano) + " " + o.By
}

// ParseOpening reads the annotation of a pod. It returns the zero Opening for what cannot be read: no process that lets jobs onto a node
// writes that.
func ParseOpening(text string) Opening {
	at, by, _ := strings.Cut(text, " ")
	when, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return Opening{}
	}
	return Opening{At: when, By: by}
}

// maxOpeningDuration is how long after an Opening the write to Slurm that follows it may arrive: it leaves within a minute, the client gives
// it up after another one, and the clocks of two operators may differ by as much.
const maxOpeningDuration = 3 * time.Minute

// Over returns when no write that followed the Opening is under way any more; zero for the zero Opening. seen is when it was seen first. It
// was made before that, whatever a clock that is ahead shows.
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
