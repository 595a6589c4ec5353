// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package need counts the jobs that need partitions which are to go: how many there are of each kind, and which of them ends last.
package need

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// A Job is what matters here of a job.
type Job struct {
	// ID is its number, as squeue shows it.
	ID string
	// Partition is the partition of the job, or those that it waits for, separated by commas.
	Partition string
	// State is the base state and its flags, and Reason why it is so (squeue(1), JOB REASON CODES).
	State  []string
	Reason string
	// End is when Slurm ends it by its time limit; zero without one.
	End time.Time
	// Tasks is how many jobs it stands for: the tasks of an array that have not started; 0 counts as one.
	Tasks int
}

// Jobs are the jobs of one partition that have not ended. Other ones are in a state that is not known here.
type Jobs struct {
	Running, Suspended, Completing, Pending, Held, Other int
	// Last is the number of the running job that ends last, empty when none runs. End is when Slurm ends it at the latest; zero when it has
	// no time limit.
	Last string
	End  time.Time
}

// Count counts the jobs of partitions. Jobs that have ended are left out.
func Count(jobs []Job, partitions []string) map[string]Jobs {
	out := make(map[string]Jobs, len(partitions))
	for _, name := range partitions {
		out[name] = Jobs{}
	}
	for _, j := range jobs {
		if rest.Finished(j.State) {
			continue
		}
		for name := range strings.SplitSeq(j.Partition, ",") {
			if of, ok := out[name]; ok {
				of.add(j)
				out[name] = of
			}
		}
	}
	return out
}

// add counts a job.
//
//	state                                        kind         why
//	COMPLETING                                   completing   it has ended, and its nodes are not free yet
//	SUSPENDED, STOPPED                           suspended    its end moves on
//	PENDING, and a person or requeueing holds it held         nothing happens until somebody releases it
//	PENDING                                      pending
//	RUNNING                                      running      it ends by its time limit
func (j *Jobs) add(job Job) {
	is := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return slices.Contains(job.State, word) })
	}
	n := max(1, job.Tasks)
	switch {
	case is("COMPLETING"):
		j.Completing += n
	case is("SUSPENDED", "STOPPED"):
		j.Suspended += n
	case is("REQUEUE_HOLD", "SPECIAL_EXIT"), is("PENDING") && isHeld(job.Reason):
		j.Held += n
	case is("PENDING", "REQUEUED", "REQUEUE_FED"):
		j.Pending += n
	case is("RUNNING", "CONFIGURING"):
		j.Running += n
		if j.Last == "" || !j.End.IsZero() && (job.End.IsZero() || job.End.After(j.End)) {
			j.Last, j.End = job.ID, job.End
		}
	default:
		j.Other += n
	}
}

// isHeld reports whether a job waits for somebody to release it: JobHeldUser, JobHeldAdmin, JobHoldMaxRequeue.
func isHeld(reason string) bool {
	return strings.HasPrefix(reason, "JobHeld") || strings.HasPrefix(reason, "JobHold")
}

// String is like "2 running, 1 pending (job 12 ends last, by 2026-01-02T15:04:05Z)", or "none".
func (j Jobs) String() string {
	var kinds []string
	for _, kind := range []struct {
		n    int
		name string
	}{
		{j.Running, "running"}, {j.Suspended, "suspended"}, {j.Pending, "pending"}, {j.Held, "held"}, {j.Completing, "completing"},
		{j.Other, "in other states"},
	} {
		if kind.n > 0 {
			kinds = append(kinds, fmt.Sprintf("%d %s", kind.n, kind.name))
		}
	}
	text := strings.Join(kinds, ", ")
	switch {
	case text == "":
		return "none"
	case j.Last == "":
		return text
	case j.End.IsZero():
		return text + " (job " + j.Last + " has no time limit)"
	default:
		return text + " (job " + j.Last + " ends last, by " + j.End.UTC().Format(time.RFC3339) + ")"
	}
}

// An Answer is what is known of the jobs that need partitions. With the zero value nothing is known.
type Answer struct {
	// Of are the jobs by partition; nil when they are not known. Unknown is the reason.
	Of      map[string]Jobs
	Unknown string
	// AtLeast is true if not all jobs were counted.
	AtLeast bool
}

// Words returns a text of what is known of the jobs of some partitions, in their order.
func (a Answer) Words(partitions []string) string {
	if a.Of == nil {
		text := "which jobs need them is not known"
		if a.Unknown != "" {
			text += ": " + a.Unknown
		}
		return text
	}
	var out []string
	for _, name := range partitions {
		jobs := a.Of[name]
		text := jobs.String()
		switch {
		case a.AtLeast && jobs == (Jobs{}):
			text = "none among those looked at so far"
		case a.AtLeast:
			text = "at least " + text
		}
		out = append(out, "jobs of "+name+": "+text)
	}
	return strings.Join(out, "; ")
}
