// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Job is a job that occupies nodes.
type Job struct {
	ID int64
	// State is the base state and its flags: "RUNNING", "COMPLETING" …
	State []string
	User  string
	// Nodes is the hostlist expression of the job's nodes.
	Nodes string
	// Start is when the job started, End when Slurm will end it (start plus time limit).
	Start time.Time
	End   time.Time
	// Unlimited is true if the job has no time limit; End is zero then. (Slurm itself writes start plus a year.)
	Unlimited bool
}

// JobList is an answer to "which jobs occupy nodes".
type JobList struct {
	// Unchanged is true if no job changed since the time that was asked for; Jobs is nil then.
	Unchanged bool
	// Updated is slurmctld's time of the answer, to be passed as since next time. It is zero for Unchanged.
	Updated time.Time
	Jobs    []Job
	Meta    Meta
}

// Jobs lists the jobs that occupy nodes, or answers Unchanged when no job changed since then.
//
// This is slurmrestd's most expensive answer: 12 kB for each job there is, pending ones included (10,000 jobs: 128 MB,
// 11 s). It is decoded from the stream, and only jobs that occupy nodes are kept.
func (c *Client) Jobs(ctx context.Context, since time.Time) (JobList, error) {
	var list JobList
	unchanged, err := c.list(ctx, "jobs/", since, c.options.MaxBytes, func(r *reader, conditional bool) (errs []slurmError, err error) {
		list, errs, err = decodeJobs(r, conditional)
		return errs, err
	})
	if err != nil {
		return JobList{}, fmt.Errorf("listing Slurm jobs of %s: %w", c, err)
	}
	if unchanged {
		return JobList{Unchanged: true}, nil
	}
	return list, nil
}

// decodeJobs reads an answer to GET jobs, by the same rules as decodeNodes.
func decodeJobs(r *reader, conditional bool) (JobList, []slurmError, error) {
	var a answer
	var jobs []Job
	found, any := false, false
	err := a.decode(r, func(key string) bool {
		if key != "jobs" || r.peek() == 'n' {
			return false
		}
		found, any, jobs = true, false, nil
		for ok := r.open('['); ok; ok = r.more('[') {
			any = true
			if j := r.job(); Occupies(j.State) && r.admit(len(jobs), MaxJobs, "jobs that occupy nodes") {
				jobs = append(jobs, j)
			}
		}
		return true
	})
	switch {
	case err != nil:
		return JobList{}, nil, err
	case len(a.errors) > 0:
		return JobList{}, a.errors, nil
	case !found:
		return JobList{}, nil, errNoList
	case !any && a.lastUpdate.IsZero() && conditional:
		return JobList{Unchanged: true, Meta: a.meta}, nil, nil
	case !any && a.lastUpdate.IsZero():
		return JobList{}, nil, errUndated
	}
	return JobList{Updated: a.lastUpdate, Jobs: jobs, Meta: a.meta}, nil, nil
}

// Occupies reports whether a job in this state holds nodes. It lists the states that hold none, so that an unknown state counts as
// holding them.
func Occupies(state []string) bool {
	if Completing(state) || slices.Contains(state, "CONFIGURING") {
		return true
	}
	for _, s := range state {
		switch s {
		case "PENDING", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE",
			"OUT_OF_MEMORY", "LAUNCH_FAILED", "RECONFIG_FAIL", "REVOKED":
			return false
		}
	}
	return true
}

// Completing reports whether a job in this state has ended, while its processes or its epilog still run on some of its nodes.
func Completing(state []string) bool { return slices.Contains(state, "COMPLETING") }

// Hidden reports whether a job in this state may hold nodes that look idle, as one that is suspended does unless memory is a
// resource. Nodes of jobs that run, or complete, look busy.
func Hidden(state []string) bool {
	return Occupies(state) && !slices.ContainsFunc(state, func(s string) bool {
		return s == "RUNNING" || s == "COMPLETING" || s == "CONFIGURING"
	})
}

func (r *reader) job() Job {
	var j Job
	if r.peek() == 'n' {
		r.fail("expected '{', found null")
	}
	var limit quantity
	for ok := r.open('{'); ok; ok = r.more('{') {
		switch string(r.key()) {
		case "job_id":
			j.ID = r.quantity().number
		case "job_state":
			j.State = r.list()
		case "user_name":
			j.User = r.shared()
		case "nodes":
			j.Nodes = r.text("")
		case "start_time":
			j.Start = r.time()
		case "end_time":
			j.End = r.time()
		case "time_limit":
			limit = r.quantity()
		default:
			r.skip()
		}
	}
	if limit.infinite {
		j.Unlimited, j.End = true, time.Time{}
	}
	return j
}
