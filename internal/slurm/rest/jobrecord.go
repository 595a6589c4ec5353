// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// JobRecord is what slurmctld has on one job, whether it runs or not. It forgets a job MinJobAge after its end.
type JobRecord struct {
	ID   int64
	Name string
	// ArrayJob is the number of the array that the job is a task of, or that it stands for; zero for none. ArrayTask is the number of
	// the task, or the numbers of those that have not started yet: "3", "4-9%2".
	ArrayJob  int64
	ArrayTask string
	Partition string
	// Mail is whom Slurm mails about the job: an address, or the user.
	Mail string
	// User is empty when slurmrestd's pod has no name for UserID: it knows the users of the jail and of LoginSets, and not those of SSSD alone.
	// UserID is Nobody when slurmctld could not look up who has submitted the job.
	User   string
	UserID int64
	// Comment is what the job was submitted with.
	Comment string
	// State is the base state and its flags, and Reason why it is so: "Resources", "NonZeroExitCode", "TimeLimit" …; see squeue(1),
	// JOB REASON CODES.
	State  []string
	Reason string
	// Nodes is the hostlist expression of the nodes that the job has or had.
	Nodes string
	// Required is the hostlist expression of the nodes that the job was submitted for by name.
	Required string
	// CPUs are how many the job has, or waits for, and TRES all that it has, or waits for: "cpu=4,mem=4000M,node=1,billing=4".
	CPUs int64
	TRES string
	// Output and ErrorOutput are the files that the script writes, as the user has named them or with the names made from that: releases
	// differ.
	Output, ErrorOutput string
	// ExitCode is what the script ended with, and Signal the number of the signal that ended it; zero for none.
	ExitCode, Signal int64
	// Submitted, Start and End are zero while they are not known. End is zero, too, before the job has ended.
	Submitted, Start, End time.Time
	// Limit is when Slurm will end a job that runs; zero without a time limit.
	Limit time.Time
}

// Nobody is the uid of a user whom slurmctld cannot look up (SLURM_AUTH_NOBODY in slurm.h).
const Nobody = 99

// Finished reports whether a job in this state has ended for good: it is not completing, and not queued again.
func Finished(state []string) bool {
	return len(state) > 0 && !Occupies(state) && !slices.ContainsFunc(state, func(s string) bool {
		return s == "PENDING" || s == "REQUEUED" || s == "REQUEUE_HOLD" || s == "REQUEUE_FED" || s == "SPECIAL_EXIT"
	})
}

// Job asks for one job, which takes 12 kB. It is Absent when slurmctld does not have it, or has forgotten it.
func (c *Client) Job(ctx context.Context, id int64) (JobRecord, error) {
	var list []JobRecord
	err := c.get(ctx, "job/"+strconv.FormatInt(id, 10), func(r *reader) (errs []slurmError, err error) {
		list, errs, err = decodeJobRecords(r, func(j JobRecord) bool { return j.ID == id })
		if err == nil && len(errs) == 0 && len(list) != 1 {
			err = errNoJob
		}
		return errs, err
	})
	if err != nil {
		return JobRecord{}, fmt.Errorf("looking at Slurm job %d of %s: %w", id, c, err)
	}
	return list[0], nil
}

// JobRecords lists the jobs that are wanted. slurmrestd sends all jobs that there are, 12 kB for each (see Jobs), so this is for
// callers that have lost their numbers. With numbers, StatesOfJobs and Job cost less.
func (c *Client) JobRecords(ctx context.Context, wanted func(JobRecord) bool) ([]JobRecord, error) {
	var list []JobRecord
	_, err := c.list(ctx, "jobs/", time.Time{}, c.options.MaxBytes, func(r *reader, _ bool) (errs []slurmError, err error) {
		list, errs, err = decodeJobRecords(r, wanted)
		return errs, err
	})
	if err != nil {
		return nil, fmt.Errorf("listing Slurm jobs of %s: %w", c, err)
	}
	return list, nil
}

// decodeJobRecords reads an answer to GET jobs or GET job, and keeps what is wanted.
func decodeJobRecords(r *reader, wanted func(JobRecord) bool) ([]JobRecord, []slurmError, error) {
	var a answer
	var list []JobRecord
	found, any := false, false
	err := a.decode(r, func(key string) bool {
		if key != "jobs" || r.peek() == 'n' {
			return false
		}
		found, any, list = true, false, nil
		for ok := r.open('['); ok; ok = r.more('[') {
			any = true
			kept := r.kept
			j := r.jobRecord()
			if !wanted(j) {
				r.kept = kept
			} else if r.admit(len(list), maxEntries, "jobs that were asked for") {
				list = append(list, j)
			}
		}
		return true
	})
	switch {
	case err != nil || len(a.errors) > 0:
		return nil, a.errors, err
	case !found:
		return nil, nil, errNoList
	case !any && a.lastUpdate.IsZero():
		return nil, nil, errUndated
	}
	return list, nil, nil
}

func (r *reader) jobRecord() JobRecord {
	var j JobRecord
	var task, limit quantity
	var waiting, requested string
	if r.peek() == 'n' {
		r.fail("expected '{', found null")
	}
	for ok := r.open('{'); ok; ok = r.more('{') {
		key := r.key()
		switch string(key) {
		case "job_id":
			j.ID = r.quantity().number
		case "name":
			j.Name = r.text("")
		case "user_name":
			j.User = r.text("")
		case "user_id":
			j.UserID = r.quantity().number
		case "array_job_id":
			j.ArrayJob = r.quantity().number
		case "array_task_id":
			task = r.quantity()
		case "array_task_string":
			waiting = r.text("")
		case "tres_alloc_str":
			j.TRES = r.shared()
		case "tres_req_str":
			requested = r.shared()
		case "time_limit":
			limit = r.quantity()
		case "required_nodes":
			j.Required = r.text("")
		case "comment":
			j.Comment = r.text("")
		case "job_state":
			j.State = r.list()
		case "state_reason":
			j.Reason = r.text("")
		case "nodes":
			j.Nodes = r.text("")
		case "exit_code":
			j.ExitCode, j.Signal = r.exitCode()
		case "submit_time":
			j.Submitted = r.time()
		case "start_time":
			j.Start = r.time()
		case "end_time":
			j.End = r.time()
		default:
			r.shownOfJob(&j, key)
		}
	}
	j.TRES, j.ArrayTask = cmp.Or(j.TRES, requested), waiting
	if task.set {
		j.ArrayTask = strconv.FormatInt(task.number, 10)
	}
	if !Finished(j.State) {
		if limit.set && !limit.infinite {
			j.Limit = j.End
		}
		j.End = time.Time{} // Slurm's guess, which is a year or a century away without a time limit
	}
	return j
}

// shownOfJob reads fields that are only shown, and skips the others.
func (r *reader) shownOfJob(j *JobRecord, key []byte) {
	switch string(key) {
	case "partition":
		j.Partition = r.shared()
	case "mail_user":
		j.Mail = r.shared()
	case "cpus":
		j.CPUs = r.quantity().number
	case "standard_output":
		j.Output = r.text("")
	case "standard_error":
		j.ErrorOutput = r.text("")
	default:
		r.skip()
	}
}

// exitCode reads how a script ended.
func (r *reader) exitCode() (code, signal int64) {
	for ok := r.open('{'); ok; ok = r.more('{') {
		switch string(r.key()) {
		case "return_code":
			code = r.quantity().number
		case "signal":
			for ok := r.open('{'); ok; ok = r.more('{') {
				// "id" from v0.0.41 on, "signal_id" before.
				if key := r.key(); string(key) == "id" || string(key) == "signal_id" {
					signal = r.quantity().number
				} else {
					r.skip()
				}
			}
		default:
			r.skip()
		}
	}
	return code, signal
}
