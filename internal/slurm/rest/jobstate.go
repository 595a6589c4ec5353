// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// JobState is the state of a job, without anything else.
type JobState struct {
	// ID is the job's number. Tasks of an array that have not started have the array's number, with an entry each, and those that have
	// started have numbers of their own. Slurm writes a task behind it, or a component of a heterogeneous job: "18_3", "22+0".
	ID int64
	// State is the base state and its flags.
	State []string
}

// JobStates lists the states of jobs: 80 bytes for each that there is, where Jobs has 10 kB. Of those that are not wanted
// nothing is kept; nil wants all. Slurm does not give the time when the list was made; an empty list is believed.
func (c *Client) JobStates(ctx context.Context, wanted func(JobState) bool) ([]JobState, error) {
	var list []JobState
	err := c.get(ctx, "jobs/state/", func(r *reader) (errs []slurmError, err error) {
		list, errs, err = decodeJobStates(r, wanted)
		return errs, err
	})
	if err != nil {
		return nil, fmt.Errorf("listing the states of Slurm jobs of %s: %w", c, err)
	}
	return list, nil
}

// maxAsked is how many jobs StatesOfJobs asks for in one call: their numbers are part of the URL.
const maxAsked = 500

// StatesOfJobs lists the states of some jobs, 80 bytes for each, by one call for 500 of them. Jobs that slurmctld does not have are
// left out. The numbers go as "job_id=1&job_id=2": slurmrestd refuses a list with commas as no query, or does not answer it.
func (c *Client) StatesOfJobs(ctx context.Context, ids []int64) ([]JobState, error) {
	var all []JobState
	for asked := range slices.Chunk(ids, maxAsked) {
		query := url.Values{}
		for _, id := range asked {
			query.Add("job_id", strconv.FormatInt(id, 10))
		}
		var list []JobState
		_, err := c.do(ctx, call{method: http.MethodGet, path: "jobs/state/", query: query, repeatable: true, decode: func(r *reader) (errs []slurmError, err error) {
			list, errs, err = decodeJobStates(r, nil)
			return errs, err
		}})
		if err != nil {
			return nil, fmt.Errorf("listing the states of %d Slurm jobs of %s: %w", len(ids), c, err)
		}
		all = append(all, list...)
	}
	return all, nil
}

func decodeJobStates(r *reader, wanted func(JobState) bool) ([]JobState, []slurmError, error) {
	var a answer
	var list []JobState
	found := false
	err := a.decode(r, func(key string) bool {
		if key != "jobs" || r.peek() == 'n' {
			return false
		}
		found, list = true, nil
		for ok := r.open('['); ok; ok = r.more('[') {
			if s := r.jobState(); (wanted == nil || wanted(s)) && r.admit(len(list), maxStates, "states of jobs") {
				list = append(list, s)
			}
		}
		return true
	})
	if err == nil && len(a.errors) == 0 && !found {
		err = errNoList
	}
	return list, a.errors, err
}

// jobState reads what both releases send ("job_id" as text, "state") and what is published ("job_id" as a number, "job_state").
func (r *reader) jobState() JobState {
	var j JobState
	for ok := r.open('{'); ok; ok = r.more('{') {
		switch string(r.key()) {
		case "job_id":
			j.ID = r.jobNumber()
		case "state", "job_state":
			j.State = r.list()
		default:
			r.skip()
		}
	}
	return j
}

// jobNumber reads the number of a job, without the task or component that may stand behind it.
func (r *reader) jobNumber() int64 {
	if r.peek() != '"' {
		return r.integer()
	}
	text := r.bytes()
	if end := bytes.IndexAny(text, "_+"); end >= 0 {
		text = text[:end]
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil && r.err == nil {
		r.fail("the number of a job is none")
	}
	return n
}
